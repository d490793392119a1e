import { epochMilliseconds, epochSeconds } from '../../lib/time/timestamps.ts'
import type { Row } from '../../lib/feeds/payloads.ts'
import { symbolOf } from '../contract-names.ts'
import type { FundingRate } from '../funding-rate.ts'
import { decimalOf, priceOf } from '../payload-numbers.ts'
import { createParsed, levelsOf, rowsOf, settledRows, textOf, type Venue } from './funding-venue.ts'

/** Perpetual contracts and perpetual contracts on currencies, by CFI code. */
const PERPETUAL = new Set(['FFWCSX', 'FFWCSF'])
/** An interval is written as this date plus the interval. */
const ORIGIN = Date.UTC(2000, 0, 1)

/**
 * BitMEX: every open instrument in one list. `fundingInterval` is a date: "2000-01-01T08:00:00.000Z" is eight hours.
 *
 * Source: BitMEX REST API, "Instrument: get all active instruments".
 */
export const bitmex: Venue = {
  name: 'bitmex',
  url: 'https://www.bitmex.com',
  requests: { instruments: { path: '/api/v1/instrument/active' } },
  parse({ instruments }, at) {
    const parsed = createParsed(at)
    for (const row of rowsOf(instruments)) {
      if (!PERPETUAL.has(textOf(row['typ'])) || (row['state'] ?? 'Open') !== 'Open') continue
      const base = textOf(row['underlying']) || textOf(row['rootSymbol'])
      const end = epochMilliseconds(row['fundingInterval'])
      const next = epochSeconds(row['fundingTimestamp'])
      parsed.add({
        instrument: textOf(row['symbol']),
        symbol: symbolOf(base),
        quote: textOf(row['quoteCurrency']),
        settle: symbolOf(textOf(row['settlCurrency'])),
        contract: row['isInverse'] === true ? 'inverse' : row['isQuanto'] === true ? 'quanto' : 'linear',
        rate: decimalOf(row['fundingRate']),
        intervalHours: end === null ? null : (end - ORIGIN) / 3_600_000,
        intervalSource: 'venue',
        kind: 'predicted',
        predictedRate: decimalOf(row['indicativeFundingRate']),
        nextFunding: next === null ? null : Math.floor(next),
        markPrice: priceOf(row['markPrice']),
        indexPrice: priceOf(row['indicativeSettlePrice']),
        ...boundsOf(row),
        contractSize: coinsOf(row),
        volumeUsd: priceOf(row['foreignNotional24h']),
        // Its own timestamp is that of the last trade.
        observed: at,
      })
    }
    return parsed
  },
  settled: {
    windowSeconds: 499 * 3600,
    request: (instrument, from, to) => ({
      path: `/api/v1/funding?symbol=${instrument}&count=500&startTime=${new Date(from * 1000).toISOString()}&endTime=${new Date(to * 1000).toISOString()}`,
    }),
    parse: (payload) =>
      settledRows(rowsOf(payload), (row) => ({
        time: epochSeconds(row['timestamp']),
        rate: decimalOf(row['fundingRate']),
      })),
  },
  book: {
    request: (instrument) => ({ path: `/api/v1/orderBook/L2?symbol=${instrument}&depth=100` }),
    sides(payload) {
      const side = (name: string) => levelsOf(rowsOf(payload).filter((row) => row['side'] === name), 'price', 'size') // prettier-ignore
      return { bids: side('Buy'), asks: side('Sell') }
    },
    inContracts: true,
  },
}

/** Coins in one contract of a linear contract, which BitMEX states as contracts in one coin. */
function coinsOf(row: Row): number | null {
  const contracts = priceOf(row['underlyingToPositionMultiplier'])
  return contracts === null || row['isInverse'] === true || row['isQuanto'] === true ? null : 1 / contracts
}

/**
 * "The cap on the absolute Funding Rate" is "75% x (Initial Margin – Maintenance Margin)": BitMEX, "Reduction in Base Maintenance
 * Margin – XBT and ETH Series", 17 April 2020. Another cap bounds the change from one interval to the next, which one answer does
 * not show.
 */
function boundsOf(row: Row): Pick<FundingRate, 'floor' | 'cap' | 'boundsSource'> {
  const [initial, maintenance] = [priceOf(row['initMargin']), priceOf(row['maintMargin'])]
  if (initial === null || maintenance === null || initial <= maintenance) return {}
  const cap = decimalOf(Number((0.75 * (initial - maintenance)).toPrecision(12)))!
  return { floor: `-${cap}`, cap, boundsSource: 'published' }
}
