/** The shapes of a 402 as x402 clients and indexers demand them (x402 specification, versions 1 and 2). */
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import formats from 'ajv-formats'

const address = { type: 'string', pattern: '^0x[0-9a-fA-F]{40}$' }
const amount = { type: 'string', pattern: '^[1-9][0-9]{0,30}$' }
const description = { type: 'string', minLength: 1, maxLength: 500 }
const extra = {
  type: 'object',
  required: ['name', 'version'],
  properties: { name: { type: 'string', minLength: 1 }, version: { type: 'string', minLength: 1 } },
}
const seconds = { type: 'integer', minimum: 1 }

const V2 = {
  type: 'object',
  required: ['x402Version', 'resource', 'accepts'],
  properties: {
    x402Version: { const: 2 },
    error: { type: 'string' },
    resource: {
      type: 'object',
      required: ['url', 'description', 'mimeType'],
      properties: { url: { type: 'string', format: 'uri' }, description, mimeType: { type: 'string', minLength: 3 } },
    },
    accepts: {
      type: 'array',
      minItems: 1,
      items: {
        type: 'object',
        required: ['scheme', 'network', 'amount', 'asset', 'payTo', 'maxTimeoutSeconds'],
        properties: {
          scheme: { type: 'string', minLength: 1 },
          network: { type: 'string', pattern: '^[-a-z0-9]{3,8}:[-_a-zA-Z0-9]{1,32}$' },
          amount,
          asset: address,
          payTo: address,
          maxTimeoutSeconds: seconds,
          extra,
        },
      },
    },
    extensions: {
      type: 'object',
      required: ['bazaar'],
      properties: {
        bazaar: {
          type: 'object',
          required: ['info', 'schema'],
          properties: { info: { type: 'object', required: ['input'] }, schema: { type: 'object' } },
        },
      },
    },
  },
}

const V1 = {
  type: 'object',
  required: ['x402Version', 'error', 'accepts'],
  properties: {
    x402Version: { const: 1 },
    error: { type: 'string', minLength: 1 },
    accepts: {
      type: 'array',
      minItems: 1,
      items: {
        type: 'object',
        required: [
          'scheme',
          'network',
          'maxAmountRequired',
          'resource',
          'description',
          'mimeType',
          'payTo',
          'maxTimeoutSeconds',
          'asset',
        ],
        properties: {
          scheme: { const: 'exact' },
          network: { type: 'string', pattern: '^[a-z0-9-]+$' },
          maxAmountRequired: amount,
          resource: { type: 'string', format: 'uri' },
          description,
          mimeType: { type: 'string' },
          payTo: address,
          maxTimeoutSeconds: seconds,
          asset: address,
          extra,
        },
      },
    },
  },
}

const ajv = new Ajv2020({ strict: false, allErrors: true })
formats.default(ajv)
const [valid2, valid1] = [ajv.compile(V2), ajv.compile(V1)]

/** What is wrong with the object of the PAYMENT-REQUIRED header; null where nothing is. */
export const wrongV2 = (value: unknown): string | null => wrong(valid2, value)
/** What is wrong with the body of a 402; null where nothing is. */
export const wrongV1 = (value: unknown): string | null => wrong(valid1, value)

/** What is wrong with a value by a schema that came over the wire; null where nothing is. */
export function wrongBy(schema: object, value: unknown): string | null {
  try {
    return wrong(new Ajv2020({ strict: false, allErrors: true, validateFormats: false }).compile(schema), value)
  } catch (error) {
    return `the schema itself: ${(error as Error).message}`
  }
}

function wrong(validate: ValidateFunction, value: unknown): string | null {
  if (validate(value)) return null
  return (validate.errors ?? [])
    .slice(0, 3)
    .map(({ instancePath, message }) => `${instancePath || 'the object'} ${message ?? 'is wrong'}`)
    .join('; ')
}
