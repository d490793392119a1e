/** Settings: the sources of the directory, and how often it reads sources and visits services. */
const KINDS = ['bazaar', 'mcp_registry', 'erc8004', 'origins', 'agent_cards'] as const
export type SourceKind = (typeof KINDS)[number]

export interface SourceSettings {
  readonly id: string
  readonly kind: SourceKind
  readonly enabled: boolean
  /** Address of a listing. For an ERC-8004 registry, the JSON-RPC address of its chain. */
  readonly url?: string
  /** ERC-8004: contract and chain (CAIP-2) of the registry. */
  readonly registry?: `0x${string}`
  readonly network?: string
  /** First origins to ask for their own documents. The origins of listed services are added. */
  readonly origins?: readonly string[]
}

export interface Settings {
  /** In order of precedence. */
  readonly sources: readonly SourceSettings[]
  readonly sweep_hours: number
  /** Hours between two visits of one service; 0 switches visits off. */
  readonly visit_hours: number
  /** Pause between two pages of one source. */
  readonly pause_ms: number
  /** How many hours of history are kept. */
  readonly keep_hours: number
}

/** JSON Schema of the product's settings. */
export const settingsSchema = {
  type: 'object',
  additionalProperties: false,
  required: ['sources'],
  properties: {
    sources: {
      type: 'array',
      items: {
        type: 'object',
        additionalProperties: false,
        required: ['id', 'kind'],
        anyOf: [{ properties: { kind: { not: { const: 'erc8004' } } } }, { required: ['url', 'registry', 'network'] }],
        properties: {
          id: { type: 'string', pattern: '^[a-z0-9_]{2,30}$' },
          kind: { enum: KINDS },
          enabled: { type: 'boolean', default: true },
          url: { type: 'string', pattern: '^https?://' },
          registry: { type: 'string', pattern: '^0x[0-9a-fA-F]{40}$' },
          network: { type: 'string', pattern: '^eip155:[0-9]+$' },
          origins: { type: 'array', items: { type: 'string', pattern: '^https?://[^/]+$' } },
        },
      },
    },
    sweep_hours: { type: 'number', exclusiveMinimum: 0, default: 6 },
    visit_hours: { type: 'number', minimum: 0, default: 24 },
    pause_ms: { type: 'integer', minimum: 0, default: 500 },
    keep_hours: { type: 'integer', minimum: 1, default: 48 },
  },
} as const
