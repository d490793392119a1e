/** Catalog documents against schemas/catalog: fields, types, patterns. */
import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import type { JsonSchema } from '../plugin/plugin.ts'
import { compile, createAjv } from './ajv.ts'
import { type Mistake, pointerOf } from './issue.ts'
import { type CatalogDocument, isObject } from './documents.ts'
import { type Said, sentences } from './messages.ts'

const folder = resolve(import.meta.dirname, '..', '..', 'schemas', 'catalog')

function validatorOf(kind: CatalogDocument['kind']) {
  const schema = JSON.parse(readFileSync(join(folder, `${kind}.json`), 'utf8')) as JsonSchema
  return compile(createAjv(new Map(), { allErrors: true }), schema, kind)
}

const validators = {
  product: validatorOf('product'),
  service: validatorOf('service'),
  plans: validatorOf('plans'),
  networks: validatorOf('networks'),
}

/** Every way a document differs from its schema. */
export function shapeMistakes({ file, kind, content }: CatalogDocument): Mistake[] {
  const validate = validators[kind]
  if (validate(content)) return []
  return sentences(validate.errors ?? []).map((said) => ({
    file,
    pointer: pointerOf(...said.steps),
    rule: said.rule,
    message: messageOf(said),
  }))
}

/** The schema's descriptions say what to write instead. */
function messageOf({ rule, msg, input, steps, schema }: Said): string {
  const within = isObject(schema) ? schema : {}
  if (rule === 'required') {
    const field = (within['properties'] as Record<string, JsonSchema> | undefined)?.[String(steps.at(-1))]
    return [msg, field?.['description']].filter(Boolean).join(' ')
  }
  if (rule === 'additionalProperties') return msg
  const found = rule === 'pattern' ? `Is ${JSON.stringify(input)}.` : msg
  return [found, within['description']].filter(Boolean).join(' ')
}
