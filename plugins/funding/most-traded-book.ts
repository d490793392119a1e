/** The order book of a perpetual for other products: that of the contract on a coin that is traded most. */
import type { PerpetualBook, PerpetualBookQuery } from '../../schemas/types.d.ts'
import type { Level } from '../lib/quant/order-book.ts'
import { lotOf, symbolOf } from './contract-names.ts'
import { readCurrentRates } from './current-rates.ts'
import type { RateSource } from './funding-rate.ts'
import type { PerpetualBooks } from './perpetual-books.ts'
import type { VenueRate } from './price-agreement.ts'
import { representatives } from './spreads.ts'

/**
 * The newest book of one contract on a coin, known at `asOf` (epoch seconds): of the contracts that stand for their venues in
 * spreads, the one with the largest volume that has a book of the last `max_age_seconds`. Null if none has. The choice by
 * volume keeps to one venue; the newest book of all would be of another venue every few minutes.
 */
export async function answerPerpetualBook(
  { source, books }: { readonly source: RateSource; readonly books: PerpetualBooks },
  { symbol, max_age_seconds: maxAge }: PerpetualBookQuery,
  asOf: number,
): Promise<PerpetualBook> {
  const coin = symbolOf(symbol)
  for (const { venue, instrument } of await contractsOn(coin, source, asOf)) {
    const found = await books(venue, instrument, asOf)
    if (found === null || asOf - found.time > maxAge) continue
    const lot = lotOf(instrument)
    const ofCoins = (levels: readonly Level[]): Level[] =>
      levels.map(([price, quantity]) => [price / lot, quantity * lot])
    const { bids, asks } = found.book
    return { symbol: coin, book: { venue, instrument, time: found.time, bids: ofCoins(bids), asks: ofCoins(asks) } }
  }
  return { symbol: coin, book: null }
}

/** The contract of each venue on a coin, the most traded first. One whose price differs from the others may be on another. */
async function contractsOn(coin: string, source: RateSource, asOf: number): Promise<readonly VenueRate[]> {
  // To compare the prices of all coins takes a hundred times as long.
  const ofCoin: RateSource = {
    at: async (time) =>
      (await source.at(time)).map(({ poll, ...state }) => ({
        ...state,
        poll: poll && { ...poll, rates: poll.rates.filter(({ symbol }) => symbol === coin) },
      })),
  }
  const { rates, venues, checkOf } = await readCurrentRates(ofCoin, asOf)
  const agreed = rates.filter((rate) => checkOf(rate) !== 'differs')
  return venues
    .flatMap(({ venue }) =>
      representatives(
        agreed.filter((rate) => rate.venue === venue),
        new Set([coin]),
      ),
    )
    .toSorted((a, b) => (b.volumeUsd ?? 0) - (a.volumeUsd ?? 0))
}
