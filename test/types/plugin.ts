/**
 * What the compiler must infer for the author of a plugin, and what it must refuse. plugin.test.ts compiles this file alone:
 * a line below `@ts-expect-error` that compiles is an error.
 */
import {
  API_VERSION,
  definePlugin,
  type Ask,
  type CallOf,
  type Chart,
  type FreshnessOf,
  type FromSchema,
  type KeyValueStore,
} from 'tollgate/plugin'
import { openTestProduct } from 'tollgate/testing'

declare module 'tollgate/plugin' {
  interface Plugins {
    'typed-tides': {
      getTypedTides: {
        input: { params: Readonly<Record<string, unknown>>; query: { limit: number; port?: string }; body: undefined }
        asked: { params: Readonly<Record<string, unknown>>; query: { limit?: number; port?: string }; body: undefined }
        output: { mode: 'sample' | 'online'; metres: readonly number[] }
      }
      sendTypedTide: {
        operation: 'sendTypedTide' | 'sendTypedTideForm'
        input: {
          params: Readonly<Record<string, unknown>>
          query: Readonly<Record<string, unknown>>
          body: { metres: number }
        }
        output: { ok: true }
      }
    }
  }
}

/** Compiles only if both types are the same. */
type Same<One, Other> = [One, Other] extends [Other, One] ? true : false
const same = <One, Other>(_: Same<One, Other>): void => {}

definePlugin({
  name: 'typed-tides',
  settings: {
    type: 'object',
    required: ['station'],
    properties: {
      station: { type: 'string' },
      mean: { type: 'number', default: 3 },
      key: { type: 'string', pattern: '^0x[0-9a-f]{64}$' },
      kind: { enum: ['spring', 'neap'], default: 'neap' },
      ports: { type: 'array', items: { type: 'object', required: ['name'], properties: { name: { type: 'string' } } } },
    },
  },
  async setup({ settings }) {
    same<typeof settings.station, string>(true)
    same<typeof settings.mean, number>(true)
    same<typeof settings.key, `0x${string}` | undefined>(true)
    same<typeof settings.kind, 'spring' | 'neap'>(true)
    const first: string | undefined = settings.ports?.[0]?.name
    // @ts-expect-error: the schema has no such setting
    void settings.statoin
    return {
      handlers: {
        // A text of the answer needs no `as const`.
        async getTypedTides({ input }) {
          same<typeof input.query.limit, number>(true)
          // @ts-expect-error: the schema has no such field
          void input.query.limitt
          return { mode: 'sample', metres: [input.query.limit, settings.mean, (first ?? '').length] }
        },
        sendTypedTide({ input }) {
          same<typeof input.body.metres, number>(true)
          return { ok: true }
        },
      },
      freshness({ operation, ...input }) {
        same<typeof operation, 'getTypedTides' | 'sendTypedTide' | 'sendTypedTideForm'>(true)
        return 'limit' in input.query ? null : null
      },
    }
  },
})

// `freshness` tells its inputs apart by the operation.
definePlugin({
  name: 'typed-tides',
  setup: ({ now }) => ({
    facts: async () => ({ now: now() }),
    handlers: { getTypedTides: () => ({ mode: 'online', metres: [] }), sendTypedTide: () => ({ ok: true }) },
    freshness: ({ operation, query, body }) => {
      if (operation === 'getTypedTides') same<typeof query.limit, number>(true)
      else same<typeof body.metres, number>(true)
      return null
    },
  }),
})

definePlugin({
  name: 'typed-tides',
  setup: ({ now }) => ({
    facts: async () => ({ now: now() }),
    handlers: {
      // @ts-expect-error: the answer has no such mode
      getTypedTides: () => ({ mode: 'smaple', metres: [] }),
      sendTypedTide: () => ({ ok: true }),
    },
  }),
})

// Before types are generated, the input can be read, and an annotation of the author's own holds.
definePlugin({
  name: 'untyped',
  setup: ({ settings }) => ({
    handlers: {
      getAny: ({ input }) => ({ limit: Number(input.query['limit']), id: input.params['id'], body: input.body }),
      getOwn: ({ input }: { readonly input: { readonly query: { readonly limit: number } } }) => input.query.limit,
      getUnit: () => settings['unit'],
    },
    freshness: ({ operation, query }) => (operation === 'getAny' && query['limit'] === 1 ? null : null),
  }),
})

export async function asks(ask: Ask, freshnessOf: FreshnessOf): Promise<void> {
  const { metres, mode } = await ask('getTypedTides')
  same<typeof metres, readonly number[]>(true)
  same<typeof mode, 'sample' | 'online'>(true)
  await ask('getTypedTides', { query: { port: 'Hull' } })
  await ask('sendTypedTide', { body: { metres: 1 } })
  await freshnessOf('getTypedTides')
  await ask('unknownOperation', { query: { any: 1 } })
  await ask('unknownOperation')
  // @ts-expect-error: the operation needs a body
  await ask('sendTypedTide')
  // @ts-expect-error: a limit is a number
  await ask('getTypedTides', { query: { limit: '1' } })
}

// A plugin is tested with its own types.
export async function tests(): Promise<void> {
  const plugin = definePlugin({
    name: 'typed-tides',
    apiVersion: API_VERSION,
    settings: { type: 'object', required: ['station'], properties: { station: { type: 'string' } } },
    setup: ({ now, deployment }) => ({
      handlers: { getTypedTides: () => ({ mode: 'online', metres: [] }), sendTypedTide: () => ({ ok: true }) },
      facts: async () => ({ mode: deployment.data_mode, year: now().getUTCFullYear() }),
    }),
  })
  const product = await openTestProduct(plugin, { settings: { station: 'Hull' } })
  const { metres } = await product.call('getTypedTides', { query: { port: 'Hull' } })
  same<typeof metres, readonly number[]>(true)
  const { mode, year } = await product.facts()
  same<typeof mode, 'sample' | 'replay' | 'online'>(true)
  same<typeof year, number>(true)
  for await (const { id } of await product.call('getTypedTides', { stream: { lastEventId: null } })) void id
  await product.freshness('sendTypedTide', { body: { metres: 1 } })
  await product.call('sendTypedTideForm', { body: { metres: 1 } })
  // @ts-expect-error: the plugin has no such operation
  await product.call('getTypedTide')
  // @ts-expect-error: the operation needs a body
  await product.call('sendTypedTide')
  // @ts-expect-error: a station is a text
  await openTestProduct(plugin, { settings: { station: 1 } })
}

export async function caches(kv: KeyValueStore): Promise<void> {
  await kv.set('key', 1, { ttlSeconds: 60 })
  // @ts-expect-error: seconds have a name
  await kv.set('key', 1, 60_000)
}

/** Only the fields of the input. */
export const limitOf = ({ input }: CallOf<'getTypedTides'>): number => input.query.limit
// @ts-expect-error: no handler has this name
export const noCall = (call: CallOf<'getTypedTide'>): void => void call

export const chart: Chart = {
  id: 'typed-tides',
  title: 'Tides',
  description: 'Levels by the hour.',
  x: { label: 'Time', scale: 'time' },
  y: { label: 'Metres' },
  // @ts-expect-error: a point has two numbers
  series: [{ name: 'Hull', tone: 'main', points: [[1, 2, 3]] }],
}

same<FromSchema<{ readonly type: readonly ['string', 'null'] }>, string | null>(true)
same<FromSchema<{ readonly const: 7 }>, 7>(true)
same<FromSchema<{ readonly type: 'array'; readonly items: { readonly type: 'integer' } }>, readonly number[]>(true)
