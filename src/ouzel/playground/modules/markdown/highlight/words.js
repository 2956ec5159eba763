// The words that languages keep to themselves.

const C_LIKE =
  "abstract alignas alignof and as async auto await base bool boolean break byte case catch char class concept const " +
  "constexpr continue co_await co_return decltype default defer delegate delete do double dynamic else enum event explicit " +
  "export extends extern final finally float fn for foreach friend func fun goto guard if implements import in inline " +
  "instanceof int interface internal is lateinit let lock long mutable namespace native new noexcept not open operator or " +
  "out override package private protected protocol public readonly record ref register reinterpret_cast return sealed short " +
  "signed sizeof static static_assert static_cast string struct super switch template this throw throws trait try typedef " +
  "typename union unsafe unsigned use using val var virtual void volatile when where while yield";

export const WORDS = {
  python:
    "and as assert async await break case class continue def del elif else except finally for from global if import in is " +
    "lambda match nonlocal not or pass raise return try type while with yield",
  javascript:
    "abstract as async await break case catch class const continue debugger declare default delete do else enum export " +
    "extends finally for from function get if implements import in infer instanceof interface keyof let namespace new of " +
    "private protected public readonly return satisfies set static super switch this throw try type typeof var void while " +
    "with yield any boolean bigint never number object string symbol unknown",
  shell:
    "case do done elif else esac fi for function if in local return select then until while export source alias unset set " +
    "cd echo exit exec eval test sudo trap read shift FROM RUN COPY ADD CMD ENTRYPOINT ENV ARG WORKDIR EXPOSE USER VOLUME",
  c: C_LIKE,
  go:
    "any bool break byte case chan comparable complex64 complex128 const continue default defer else error fallthrough " +
    "float32 float64 for func go goto if import int int8 int16 int32 int64 interface map package range return rune select " +
    "string struct switch type uint uint8 uint16 uint32 uint64 uintptr var",
  rust:
    "as async await bool box break char const continue crate dyn else enum extern f32 f64 fn for i8 i16 i32 i64 i128 if impl " +
    "in isize let loop match mod move mut pub ref return self Self static str struct super trait type u8 u16 u32 u64 u128 " +
    "union unsafe usize use where while yield",
  sql:
    "add all alter and as asc begin between by cascade case check column commit constraint create cross database default " +
    "delete desc distinct drop else end except exists explain foreign from full group having if in index inner insert " +
    "intersect into is join key left like limit natural not offset on or order outer over partition primary references " +
    "replace returning right rollback row rows select set table then to transaction trigger union unique update using " +
    "values view when where window with bigint boolean char date decimal double float int integer interval json jsonb " +
    "numeric real serial smallint text time timestamp uuid varchar",
  constants: {
    python: "True False None self cls",
    javascript: "true false null undefined NaN Infinity",
    json: "true false null",
    c: "true false null nullptr NULL nil None",
    go: "true false nil iota",
    rust: "true false None Some Ok Err",
    sql: "null true false",
    yaml: "true false null yes no on off",
    toml: "true false",
  },
};
