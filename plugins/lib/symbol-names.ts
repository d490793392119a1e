/** Finds symbols by any of their spellings. */
import { NotFound } from 'tollgate/plugin'

export interface NamedSymbol {
  readonly symbol: string
  /** Other spellings. Case, dash, slash and underscore are ignored. */
  readonly aliases: readonly string[]
}

export interface SymbolIndex {
  /** Returns the symbol with this spelling. Throws NotFound with some of the covered symbols. */
  resolve(name: string): string
}

const normalised = (name: string): string => name.toUpperCase().replaceAll(/[-/_\s]/g, '')
/** The most symbols that a message lists. */
const NAMED = 12

/**
 * Indexes symbols by their names and aliases.
 *
 * @example createSymbolIndex([{ symbol: 'BTC-USD', aliases: ['XBTUSD'] }]).resolve('xbt/usd') // 'BTC-USD'
 */
export function createSymbolIndex(symbols: readonly NamedSymbol[]): SymbolIndex {
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
        covered.length > NAMED
          ? `${covered.slice(0, NAMED).join(', ')} and ${covered.length - NAMED} more`
          : covered.join(', ')
      throw new NotFound(`symbol: ${name} is not covered. Covered are ${some}.`)
    },
  }
}
