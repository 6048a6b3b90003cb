// Evaluates JSONata with the reference implementation, as Step Functions documents it.
//
// Standard input: [{expression, states, variables}]. Standard output: {version: [outcome]}, where an
// outcome is {value} or {error} and the versions are 2.0.6, which Step Functions documents, and the
// newest. The functions and $states are those of the developer guide, "Transforming data with
// JSONata". A value that JSON cannot represent is an error, as there.
"use strict";

const { createHash, randomUUID } = require("node:crypto");
const { readFileSync } = require("node:fs");
const documented = require("jsonata");
const newest = require("jsonata-newest");

const ALGORITHMS = {
  "MD5": "md5",
  "SHA-1": "sha1",
  "SHA-256": "sha256",
  "SHA-384": "sha384",
  "SHA-512": "sha512",
};

// "Integer parameters are rounded down."
function partition(array, size) {
  const length = Math.floor(size);
  if (!(length > 0)) throw new Error("$partition: the size must be positive");
  const chunks = [];
  for (let at = 0; at < array.length; at += length) chunks.push(array.slice(at, at + length));
  return chunks;
}

function range(first, last, delta) {
  const [from, to, step] = [first, last, delta].map(Math.floor);
  if (!step) throw new Error("$range: the delta must not be zero");
  const values = [];
  for (let at = from; step > 0 ? at <= to : at >= to; at += step) values.push(at);
  return values;
}

function hash(text, algorithm) {
  if (typeof text !== "string" || !(algorithm in ALGORITHMS)) {
    throw new Error(`$hash: ${algorithm} of ${typeof text}`);
  }
  return createHash(ALGORITHMS[algorithm]).update(text, "utf8").digest("hex");
}

// The generator behind a seed is not documented, only that a seed always gives the same number.
function random(seed) {
  if (seed === undefined) return Math.random();
  return createHash("md5").update(`${Math.floor(seed)}`).digest().readUInt32BE() / 2 ** 32;
}

function parse(text) {
  if (typeof text !== "string") throw new Error(`$parse: ${typeof text} is not a string`);
  return JSON.parse(text);
}

const FUNCTIONS = { partition, range, hash, random, parse, uuid: () => randomUUID() };

async function evaluate(jsonata, { expression, states, variables }) {
  try {
    const prepared = jsonata(expression);
    prepared.assign("eval", undefined);
    const value = await prepared.evaluate(undefined, { ...FUNCTIONS, ...variables, states });
    const text = value?._jsonata_function ? undefined : JSON.stringify(value);
    return text === undefined ? { error: "no value" } : { value: JSON.parse(text) };
  } catch (error) {
    return { error: `${error.code ?? error.name}: ${error.message}` };
  }
}

async function main() {
  const inputs = JSON.parse(readFileSync(0, "utf8"));
  const outcomes = {};
  for (const [version, jsonata] of Object.entries({ "2.0.6": documented, "newest": newest })) {
    outcomes[version] = [];
    for (const input of inputs) outcomes[version].push(await evaluate(jsonata, input));
  }
  process.stdout.write(JSON.stringify(outcomes));
}

main();
