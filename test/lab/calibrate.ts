/**
 * `npm run lab -- calibrate`: fits the impact law to the order books that the gateway has kept, for each symbol, beside the
 * coefficient that estimates use, and prints the ranges that were learnt from them, with their coverage. It changes nothing.
 */
import { readConfig } from '../../gateway/config/config.ts'
import { openDatabase } from '../../gateway/stores/database.ts'
import { IMPACT_COEFFICIENT } from '../../plugins/lib/quant/market-impact.ts'
import { calibrateKeptBooks, type SymbolCalibration } from './calibrate/kept-book-calibrations.ts'
import { existingDatabase } from '../../scripts/command-line.ts'
import { defer, flag, readOptions, say } from './experiment.ts'

const written = (value: number): string => value.toFixed(2)
function rowOf({ symbol, kept, from, to, calibration }: SymbolCalibration): Record<string, string> {
  const days = ((to - from) / 86_400).toFixed(1)
  if (calibration === null) return { symbol, books: `${kept} over ${days} days`, coefficient: 'too few orders' }
  return {
    symbol,
    books: `${kept} over ${days} days`,
    coefficient: written(calibration.coefficient),
    'walk / law': `${written(calibration.law.low)} to ${written(calibration.law.high)}`,
  }
}

const { json } = readOptions({ json: flag('print everything as JSON') }).values
const db = openDatabase(existingDatabase(readConfig(), 'products.sqlite'))
defer(() => db.destroy())
const found = (await db.schema.hasTable('market_kept_books')) ? await calibrateKeptBooks(db) : []
if (json) say(JSON.stringify(found, null, 2))
else if (found.length === 0)
  say('No order books are kept yet. DATA_MODE=online keeps two of every five minutes and symbol.')
else {
  console.table([...found.map(rowOf), { symbol: 'estimates use', coefficient: written(IMPACT_COEFFICIENT) }])
  console.table(
    found.flatMap(({ symbol, ranges }) =>
      ranges.map(({ venue, side, usd, low, high, cases, held, judged }) => ({
        symbol: symbol,
        venue: venue,
        side: side,
        USD: usd,
        'p10 to p90, bps': `${low.toFixed(3)} to ${high.toFixed(3)}`,
        cases: cases,
        'coverage, 0.80 intended': judged === 0 ? 'none judged' : `${written(held / judged)} of ${judged}`,
      })),
    ),
  )
}
