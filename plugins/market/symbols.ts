import { NotFound } from 'tollgate/plugin'
import type { SampleSymbol } from './sample-bars.ts'
import { VENUES, type VenueName } from './venues/bar-venues.ts'

/** One entry of `symbols` in the product's settings. */
export interface CoveredSymbol extends SampleSymbol {
  readonly name: string
  /** Other spellings. Case, dash, slash and underscore are ignored. */
  readonly aliases: readonly string[]
  /** The name of the symbol at each venue, preferred venues first. */
  readonly venues: Readonly<Partial<Record<VenueName, string>>>
}

export interface VenueSettings {
  readonly url: string
  readonly enabled?: boolean
  readonly per_second?: number
}

export interface Settings {
  readonly history_start?: string
  readonly symbols: readonly CoveredSymbol[]
  /** False switches the polling of order books off. */
  readonly books?: boolean
  readonly venues?: Readonly<Partial<Record<VenueName, VenueSettings>>>
}

/** JSON Schema of the product's settings. */
export const settingsSchema = {
  type: 'object',
  additionalProperties: false,
  required: ['symbols'],
  properties: {
    history_start: {
      type: 'string',
      format: 'date-time',
      description:
        'Back-fill goes back to this time. Half a year before the first snapshot sold is enough for the models to start warm.',
    },
    symbols: {
      type: 'array',
      items: {
        type: 'object',
        additionalProperties: false,
        required: ['symbol', 'name', 'price', 'volatility', 'turnover', 'tick', 'session'],
        properties: {
          symbol: { type: 'string' },
          name: { type: 'string' },
          aliases: { type: 'array', items: { type: 'string' }, default: [] },
          session: { enum: ['24x7', 'us_equity'] },
          price: { type: 'number', exclusiveMinimum: 0, description: 'Price at the start of the sample.' },
          volatility: {
            type: 'number',
            exclusiveMinimum: 0,
            description: 'Volatility of the sample per year, a fraction.',
          },
          turnover: {
            type: 'number',
            exclusiveMinimum: 0,
            description: 'Turnover of the sample per day, in the quote currency.',
          },
          tick: { type: 'number', exclusiveMinimum: 0 },
          venues: {
            type: 'object',
            additionalProperties: false,
            properties: Object.fromEntries(Object.keys(VENUES).map((venue) => [venue, { type: 'string' }])),
            default: {},
          },
        },
      },
    },
    books: {
      type: 'boolean',
      default: true,
      description: 'Whether to poll the order books of the venues in online mode.',
    },
    venues: {
      type: 'object',
      additionalProperties: false,
      description: 'Public market-data APIs, used in online mode.',
      properties: Object.fromEntries(
        Object.keys(VENUES).map((venue) => [
          venue,
          {
            type: 'object',
            additionalProperties: false,
            required: ['url'],
            properties: {
              url: { type: 'string' },
              enabled: { type: 'boolean', default: true },
              per_second: { type: 'number', exclusiveMinimum: 0, description: 'Requests per second during back-fill.' },
            },
          },
        ]),
      ),
    },
  },
} as const

const normalised = (name: string): string => name.toUpperCase().replaceAll(/[-/_\s]/g, '')

/** Finds symbols by any of their spellings. Throws NotFound that names the field and the covered symbols. */
export function createSymbolIndex(symbols: readonly Pick<CoveredSymbol, 'symbol' | 'aliases'>[]): {
  resolve(name: string): string
} {
  const bySpelling = new Map<string, string>()
  for (const { symbol, aliases } of symbols) {
    for (const name of aliases) bySpelling.set(normalised(name), symbol)
    bySpelling.set(normalised(symbol), symbol)
  }
  return {
    resolve(name) {
      const symbol = bySpelling.get(normalised(name))
      if (symbol !== undefined) return symbol
      const covered = symbols.map((entry) => entry.symbol)
      const some =
        covered.length > 12 ? `${covered.slice(0, 12).join(', ')} and ${covered.length - 12} more` : covered.join(', ')
      throw new NotFound(`symbol: ${name} is not covered. Covered are ${some}.`)
    },
  }
}
