import { expect } from 'chai'
import type { Operation } from '../../../gateway/plugin/catalog.ts'
import { createCatalog } from '../../../gateway/catalog/resolve.ts'
import { createValidators } from '../../../gateway/catalog/operation-validators.ts'
import { InvalidInput } from '../../../gateway/errors.ts'
import type { Input, JsonSchema } from '../../../gateway/plugin/plugin.ts'
import { SERVICE, thing } from '../../support/catalog.ts'

export const SCHEMAS = new Map<string, JsonSchema>([
  [
    'bars.json',
    {
      $id: 'bars.json',
      $defs: {
        Bar: {
          type: 'object',
          required: ['open'],
          additionalProperties: false,
          properties: { open: { type: 'number', exclusiveMinimum: 0 }, unit: { type: 'string', default: 'usd' } },
        },
      },
    },
  ],
])

/** Resolves a catalog with the operation "getThing", which has these fields. */
export function operationOf(fields: Readonly<Record<string, unknown>>): Operation {
  const documents = [
    { file: 'service.json', kind: 'service' as const, content: SERVICE },
    { file: 'thing.json', kind: 'product' as const, content: thing('thing', fields) },
  ]
  const { catalog, issues } = createCatalog(documents, SCHEMAS)
  expect(issues).to.deep.equal([])
  return catalog.operations.get('getThing') as Operation
}

export function validate(fields: Readonly<Record<string, unknown>>, raw: Partial<Input>): Input {
  return createValidators(SCHEMAS)(operationOf(fields)).input({ params: {}, query: {}, body: undefined, ...raw })
}

export function detailOf(fields: Readonly<Record<string, unknown>>, raw: Partial<Input>) {
  try {
    validate(fields, raw)
  } catch (error) {
    expect(error).to.be.instanceOf(InvalidInput)
    return (error as InvalidInput).detail
  }
  throw new Error('the input was not refused')
}
