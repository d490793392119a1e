/** Catalog documents against schemas/catalog: fields, types, patterns. */
import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import type { ValidateFunction } from 'ajv/dist/2020.js'
import { networksFileIssues } from '../config/networks.ts'
import type { JsonSchema } from '../plugin/plugin.ts'
import type { Issue } from '../validation/issue.ts'
import { compile, createAjv, schemaIssues } from '../validation/json-schema.ts'
import type { CatalogDocument } from './documents.ts'

const folder = resolve(import.meta.dirname, '..', '..', 'schemas', 'catalog')

function validatorOf(kind: CatalogDocument['kind']): ValidateFunction {
  const schema = JSON.parse(readFileSync(join(folder, `${kind}.json`), 'utf8')) as JsonSchema
  return compile(createAjv(new Map(), { allErrors: true }), schema, kind)
}

const validators = { product: validatorOf('product'), service: validatorOf('service'), plans: validatorOf('plans') }

/** Every way a document differs from its schema. */
export function shapeMistakes({ file, kind, content }: CatalogDocument): Issue[] {
  return kind === 'networks' ? networksFileIssues(content) : schemaIssues(validators[kind], file, content)
}
