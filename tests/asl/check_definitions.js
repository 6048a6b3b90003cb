// What two validators say of state machine definitions.
//
// Standard input: {name: definition}. Standard output: {name: [{source, message}]}.
//
// amazon-states-language-service is AWS's own, from its editors. It knows the fields of each state
// and their bounds. It does not parse JSONata and lets fields of JSONPath states pass. asl-validator
// does both, and knows nothing of bounds.
"use strict";

const { readFileSync } = require("node:fs");
const { getLanguageService } = require("amazon-states-language-service");
const validate = require("asl-validator");
const { TextDocument } = require("vscode-languageserver-textdocument");

const service = getLanguageService({});

async function languageService(definition) {
  const text = JSON.stringify(definition, null, 1);
  const document = TextDocument.create("file:///definition.asl.json", "asl", 1, text);
  const diagnostics = await service.doValidation(document, service.parseJSONDocument(document));
  return diagnostics.map(({ message, range }) => ({
    source: "amazon-states-language-service",
    message: `${message} (near ${document.getText(range).slice(0, 80)})`,
  }));
}

function aslValidator(definition) {
  const { errors } = validate(definition, { checkPaths: true, checkArn: true });
  return errors.map((error) => ({
    source: "asl-validator",
    message: `${error.Message ?? error.message} ${error.path ?? error.instancePath ?? ""}`,
  }));
}

async function main() {
  const problems = {};
  for (const [name, definition] of Object.entries(JSON.parse(readFileSync(0, "utf8")))) {
    problems[name] = [...(await languageService(definition)), ...aslValidator(definition)];
  }
  process.stdout.write(JSON.stringify(problems));
}

main();
