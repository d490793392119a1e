/** Settings: the sources of the directory, and how often it reads sources and visits services. */
import type { FromSchema } from 'tollgate/plugin'

const KINDS = ['bazaar', 'mcp_registry', 'erc8004', 'origins', 'agent_cards'] as const
export type SourceKind = (typeof KINDS)[number]

/** JSON Schema of the product's settings. */
export const settingsSchema = {
  type: 'object',
  additionalProperties: false,
  required: ['sources'],
  properties: {
    sources: {
      type: 'array',
      description: 'In order of precedence.',
      items: {
        type: 'object',
        additionalProperties: false,
        required: ['id', 'kind'],
        anyOf: [{ properties: { kind: { not: { const: 'erc8004' } } } }, { required: ['url', 'registry', 'network'] }],
        properties: {
          id: { type: 'string', pattern: '^[a-z0-9_]{2,30}$' },
          kind: { enum: KINDS },
          enabled: { type: 'boolean', default: true },
          url: {
            type: 'string',
            pattern: '^https?://',
            description: 'Address of a listing. For an ERC-8004 registry, the JSON-RPC address of its chain.',
          },
          registry: { type: 'string', pattern: '^0x[0-9a-fA-F]{40}$', description: 'ERC-8004: the contract.' },
          network: { type: 'string', pattern: '^eip155:[0-9]+$', description: 'ERC-8004: the chain (CAIP-2).' },
          origins: {
            type: 'array',
            items: { type: 'string', pattern: '^https?://[^/]+$' },
            description: 'First origins to ask for their own documents. The origins of listed services are added.',
          },
        },
      },
    },
    sweep_hours: { type: 'number', exclusiveMinimum: 0, default: 6 },
    visit_hours: { type: 'number', minimum: 0, default: 24, description: '0 switches visits off.' },
    pause_ms: { type: 'integer', minimum: 0, default: 500, description: 'Pause between two pages of one source.' },
    keep_hours: { type: 'integer', minimum: 1, default: 48, description: 'Hours of history that are kept.' },
  },
} as const

export type Settings = FromSchema<typeof settingsSchema>
export type SourceSettings = Settings['sources'][number]
