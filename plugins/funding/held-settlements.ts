/** Settled rates that are in memory: those of the sample, and those of a recording. */
import type { HeldContract, Settlement, SettlementSource } from './settlement-store.ts'

/** A contract with all of its settlements, oldest first. */
export interface ContractSettlements {
  readonly contract: HeldContract
  readonly settlements: readonly Settlement[]
}

function compare(a: Settlement, b: readonly [time: number, venue: string, instrument: string]): number {
  if (a.time !== b[0]) return a.time - b[0]
  if (a.venue !== b[1]) return a.venue < b[1] ? -1 : 1
  return a.instrument === b[2] ? 0 : a.instrument < b[2] ? -1 : 1
}

/** Serves what `held` lists for some symbols at the moment of the call. */
export function createHeldSettlements(
  held: (symbols: readonly string[]) => readonly ContractSettlements[],
): SettlementSource {
  return {
    async read({ symbols, venues, from, to, after, limit }) {
      return held(symbols)
        .filter(({ contract }) => venues.length === 0 || venues.includes(contract.venue))
        .flatMap(({ settlements }) => settlements.filter(({ time }) => time >= from && time < to))
        .filter((settlement) => after === null || compare(settlement, after) > 0)
        .toSorted((a, b) => compare(a, [b.time, b.venue, b.instrument]))
        .slice(0, limit)
    },
    async before({ venue, instrument, symbol, time }) {
      const contract = held([symbol]).find(
        (one) => one.contract.venue === venue && one.contract.instrument === instrument,
      )
      return contract?.settlements.findLast((settlement) => settlement.time < time) ?? null
    },
    contracts: async (symbols) => held(symbols).map(({ contract }) => contract),
    collected: async () => [],
  }
}
