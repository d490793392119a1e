import { symbolOf } from '../contract-names.ts'
import { decimalOf, dollars, priceOf, secondsOf } from '../payload-numbers.ts'
import {
  createParsed,
  levelsOf,
  nextHour,
  PayloadError,
  requireList,
  rowsOf,
  settledRows,
  textOf,
  type Venue,
} from './funding-venue.ts'
import { isRow } from '../../lib/feeds/payloads.ts'

/** Hyperliquid pays every hour on the hour. No field states it. */
const HOURS = 1
/** "The funding rate is capped at 4%/hour": Hyperliquid documentation, "Funding". */
const CAP = '0.04'

/**
 * Hyperliquid: the first list has names, the second has figures in the same order. Lists of different length are an
 * error. The payload has no time, so the time of the poll counts.
 *
 * Source: Hyperliquid API, "Retrieve perpetuals asset contexts" and "Funding".
 */
export const hyperliquid: Venue = {
  name: 'hyperliquid',
  url: 'https://api.hyperliquid.xyz',
  requests: { contexts: { path: '/info', body: { type: 'metaAndAssetCtxs' } } },
  parse({ contexts }, at) {
    const [meta, figures] = Array.isArray(contexts) ? (contexts as unknown[]) : []
    const [universe, rows] = [requireList(meta, 'universe'), requireList(figures)]
    if (rows.length !== universe.length)
      throw new PayloadError(`${universe.length} names and ${rows.length} contexts cannot be joined`)
    const parsed = createParsed(at)
    universe.forEach((names, i) => {
      const row = rows[i]
      if (!isRow(names) || !isRow(row)) return
      const instrument = textOf(names['name'])
      if (names['isDelisted'] === true || instrument === '') return
      parsed.add({
        instrument,
        // kPEPE is a thousand PEPE.
        symbol: symbolOf(instrument.replace(/^k(?=[A-Z])/, '')),
        quote: 'USD',
        settle: 'USDC',
        contract: 'linear',
        rate: decimalOf(row['funding']),
        intervalHours: HOURS,
        intervalSource: 'published',
        kind: 'predicted',
        predictedRate: null,
        nextFunding: nextHour(at),
        markPrice: priceOf(row['markPx']),
        indexPrice: priceOf(row['oraclePx']),
        floor: `-${CAP}`,
        cap: CAP,
        boundsSource: 'published',
        volumeUsd: priceOf(row['dayNtlVlm']),
        openInterestUsd: dollars(row['openInterest'], row['markPx']),
        observed: at,
      })
    })
    return parsed
  },
  settled: {
    windowSeconds: 499 * 3600,
    request: (coin, from, to) => ({
      path: '/info',
      body: { type: 'fundingHistory', coin, startTime: from * 1000, endTime: to * 1000 + 999 },
    }),
    parse: (payload) =>
      settledRows(rowsOf(payload), (row) => ({ time: secondsOf(row['time']), rate: decimalOf(row['fundingRate']) })),
  },
  book: {
    request: (coin) => ({ path: '/info', body: { type: 'l2Book', coin } }),
    sides(payload) {
      const [bids, asks] = requireList(payload, 'levels')
      return { bids: levelsOf(rowsOf(bids), 'px', 'sz'), asks: levelsOf(rowsOf(asks), 'px', 'sz') }
    },
  },
}
