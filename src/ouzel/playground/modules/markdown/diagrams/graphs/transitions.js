// Transitions become edges of regions. One that crosses the borders of states is an edge in each region that it crosses, from gate
// to gate: so it goes round the states of a region, as every edge does.

import { Unreadable } from "../statements.js";
import { turnCirclesRound } from "./layers.js";

/** Gives each region its edges and gates. */
export function layTransitions(transitions) {
  const raised = transitions.map(raise);
  const regions = new Set(raised.map(({ region }) => region));
  const turned = new Set([...regions].flatMap((region) => findTurned(region, raised)));
  for (const each of raised) layEdge(each, turned.has(each));
}

/** Finds the region in which both ends of a transition are, or states around them. */
function raise({ from, to, text, line }) {
  const [froms, tos] = [statesAround(from), statesAround(to)];
  let depth = 0;
  while (depth < froms.length - 1 && depth < tos.length - 1 && froms[depth] === tos[depth] && froms[depth + 1].region === tos[depth + 1].region) depth += 1;
  if (froms[depth] === tos[depth] && from !== to) throw new Unreadable(line); // between a state and its own parts, or two of its regions
  return { region: froms[depth].region, froms: froms.slice(depth), tos: tos.slice(depth), text };
}

/** Returns a state behind all states that it is in, from the outside. */
function statesAround(state) {
  const states = [];
  for (let each = state; each !== null; each = each.region.owner) states.unshift(each);
  return states;
}

/** Returns the transitions of a region that the layers turn round. */
function findTurned(region, raised) {
  const edges = raised.filter((each) => each.region === region).map((each) => ({ each, from: each.froms[0], to: each.tos[0], isTurned: false }));
  turnCirclesRound(region.states, edges);
  return edges.filter(({ isTurned }) => isTurned).map(({ each }) => each);
}

function layEdge({ region, froms, tos, text }, isTurned) {
  const fromInside = layGates(froms, { end: isTurned ? "first" : "last", sign: "" });
  const toInside = layGates(tos, { end: isTurned ? "last" : "first", sign: ">" });
  region.edges.push({ from: froms[0].id, to: tos[0].id, text, kind: "plain", start: "", end: toInside === undefined ? ">" : "", fromInside, toInside });
}

/** Leads from the innermost state to the border of the outermost one. Returns the last gate's id, if there is one. */
function layGates(states, { end, sign }) {
  let inside;
  for (const [index, { id, region }] of [...states.entries()].slice(1).reverse()) {
    const gate = { id: `gate ${region.gates.length} ${id}`, end };
    region.gates.push(gate);
    const head = index === states.length - 1 ? sign : "";
    const edge = { text: "", kind: "plain" };
    if (end === "last") region.edges.push({ ...edge, from: id, to: gate.id, start: head, end: "", fromInside: inside });
    else region.edges.push({ ...edge, from: gate.id, to: id, start: "", end: head, toInside: inside });
    inside = gate.id;
  }
  return inside;
}
