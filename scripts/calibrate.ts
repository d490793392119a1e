/**
 * `npm run calibrate`: fits the impact law to the order books that the gateway has kept, for each symbol, and prints the
 * coefficient and the factors of the ranges beside those that estimates use. It changes nothing.
 */
import { readConfig } from '../gateway/config/config.ts'
import { openDatabase } from '../gateway/stores/database.ts'
import { IMPACT_FACTORS } from '../plugins/cost/estimate.ts'
import type { Factors } from '../plugins/cost/impact-calibration.ts'
import { IMPACT_COEFFICIENT } from '../plugins/lib/quant/market-impact.ts'
import { calibrateKeptBooks, type SymbolCalibration } from './calibrate/kept-book-calibrations.ts'
import { existingDatabase, readFlags, reportError } from './command-line.ts'

const USAGE = `npm run calibrate [-- --json]

Fits the impact law to the kept order books of the last days, by symbol, and prints what estimates use beside it.`

const written = (value: number): string => value.toFixed(2)
const range = (factors: Pick<Factors, 'low' | 'high'> | null): string =>
  factors === null ? 'too few pairs' : `${written(factors.low)} to ${written(factors.high)}`

function rowOf({ symbol, kept, from, to, calibration }: SymbolCalibration): Record<string, string> {
  const days = ((to - from) / 86_400).toFixed(1)
  if (calibration === null) return { symbol, books: `${kept} over ${days} days`, coefficient: 'too few orders' }
  return {
    symbol,
    books: `${kept} over ${days} days`,
    coefficient: written(calibration.coefficient),
    'walk / law': range(calibration.law),
    'walk / walk before': range(calibration.walk),
  }
}

async function run(): Promise<void> {
  const { values } = readFlags(USAGE, { options: { json: { type: 'boolean', default: false } } })
  const db = openDatabase(existingDatabase(readConfig(), 'products.sqlite'))
  try {
    const found = (await db.schema.hasTable('market_kept_books')) ? await calibrateKeptBooks(db) : []
    if (values.json) process.stdout.write(`${JSON.stringify(found, null, 2)}\n`)
    else if (found.length === 0)
      process.stdout.write(
        'No order books are kept yet. DATA_MODE=online keeps two of every five minutes and symbol.\n',
      )
    else {
      const { law, book } = IMPACT_FACTORS
      const used = {
        symbol: 'estimates use',
        coefficient: written(IMPACT_COEFFICIENT),
        'walk / law': range({ low: law[0], high: law[1] }),
        'walk / walk before': range({ low: book[0], high: book[1] }),
      }
      console.table([...found.map(rowOf), used])
    }
  } finally {
    await db.destroy()
  }
}

try {
  await run()
} catch (error) {
  reportError(error)
}
