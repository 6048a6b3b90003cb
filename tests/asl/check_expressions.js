// Documented rules for JSONata in Step Functions that neither validator checks.
//
// Standard input: [{text, readable}], where readable names the parts of $states that exist where
// the expression stands. Standard output: one list of problems per expression, in that order.
//
// Source of the rules: Step Functions developer guide, "Transforming data with JSONata": $states and
// where its parts exist, $eval is not available, JSONata 2.0.6 (whose parser runs here, so operators
// of 2.1 are syntax errors). There is no input document, so `$`, `$$` and unqualified names have
// nothing to refer to at the top level.
"use strict";

const { readFileSync } = require("node:fs");
const jsonata = require("jsonata");

const RELATIVE = new Set(["predicate", "stages", "group"]);

function* problems(node, readable, top) {
  if (Array.isArray(node)) {
    for (const item of node) yield* problems(item, readable, top);
  } else if (node !== null && typeof node === "object") {
    yield* ofNode(node, readable, top);
    for (const [key, value] of Object.entries(node)) {
      if (key !== "steps") yield* problems(value, readable, top && !RELATIVE.has(key));
    }
  }
}

function* ofNode(node, readable, top) {
  if (node.type === "path") yield* ofPath(node.steps, readable, top);
  else if (node.type === "variable" && node.value === "eval") yield "$eval is not available";
  else if (node.type === "variable" && node.value === "states") {
    yield "$states as a whole depends on where it stands";
  } else if (top && node.type === "variable" && ["", "$"].includes(node.value)) {
    yield `$${node.value} refers to nothing at the top level`;
  }
}

function* ofPath(steps, readable, top) {
  const [first, second] = steps;
  const ofStates = first.type === "variable" && first.value === "states" && second?.type === "name";
  if (ofStates && !readable.includes(second.value)) {
    yield `$states.${second.value} does not exist here`;
  }
  if (top && first.type === "name") yield `${first.value} is an unqualified name`;
  for (const [index, step] of steps.entries()) {
    if (index > 0 || !ofStates) yield* problems(step, readable, top && index === 0);
  }
}

function check({ text, readable }) {
  try {
    return [...problems(jsonata(text).ast(), readable, true)];
  } catch (error) {
    return [`${error.code}: ${error.message}`];
  }
}

process.stdout.write(JSON.stringify(JSON.parse(readFileSync(0, "utf8")).map(check)));
