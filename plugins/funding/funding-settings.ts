import type { VenueName } from './funding-rate.ts'
import { VENUES } from './venues/funding-venues.ts'

export interface Settings {
  /** Switches and API addresses of the venues. */
  readonly venues?: Readonly<Partial<Record<VenueName, { readonly enabled?: boolean; readonly url?: string }>>>
  /** How many hours of answers are kept in online mode. */
  readonly keep_hours: number
}

const VENUE = {
  type: 'object',
  additionalProperties: false,
  properties: {
    enabled: { type: 'boolean', default: true },
    url: { type: 'string', pattern: '^https?://', description: 'Without a path. Default: the public address.' },
  },
}

/** JSON Schema of the product's settings. */
export const settingsSchema = {
  type: 'object',
  additionalProperties: false,
  properties: {
    venues: {
      type: 'object',
      additionalProperties: false,
      properties: Object.fromEntries(Object.keys(VENUES).map((name) => [name, VENUE])),
    },
    keep_hours: { type: 'integer', minimum: 1, maximum: 168, default: 6 },
  },
}
