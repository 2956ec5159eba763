// Validates custom resources against the schemas of their makers: JSON objects in standard input, complaints in lines.
// It runs in the directory that holds the packages.
import { readFileSync } from "node:fs";
import { HTTPRoute } from "@kubernetes-models/gateway-api/gateway.networking.k8s.io/v1";
import { ScaledObject } from "@kubernetes-models/keda/keda.sh/v1alpha1";
import { PrometheusRule, ServiceMonitor } from "@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1";

const models = [HTTPRoute, ScaledObject, ServiceMonitor, PrometheusRule];
for (const object of JSON.parse(readFileSync(0, "utf8"))) {
  const name = `${object.kind} ${object.metadata.name}`;
  const model = models.find((each) => each.kind === object.kind && each.apiVersion === object.apiVersion);
  if (model === undefined) {
    console.log(`${name}: no schema of ${object.apiVersion} ${object.kind}`);
    continue;
  }
  try {
    new model(object).validate();
  } catch (error) {
    console.log(`${name}: ${error.message}`);
  }
}
