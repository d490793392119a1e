/**
 * `npm run lab -- storage`: prints the bytes that products and payments take in a database: per row, and per symbol and year.
 * On SQLite, and on PostgreSQL if a server answers at TEST_POSTGRES_URL. docs/operations.md has its table.
 */
import { readOptions, say, text } from '../experiment.ts'
import { POTUS_SUBJECTS } from './storage/potus-rows.ts'
import { bytesPerRow, inPostgres, inSqlite, type Measured, measureSales, SUBJECTS } from './storage/stored-rows.ts'

const { only } = readOptions({
  only: text('TEXT', 'measures only what has this text in its name, such as POTUS, and prints no sum', null),
}).values
const SYMBOLS = 10
const YEARS = 10

const measured: Measured[] = []
for (const subject of [...SUBJECTS, ...POTUS_SUBJECTS].filter(({ name }) => name.includes(only ?? ''))) {
  const { name, per, held } = subject
  const sqlite = await bytesPerRow(subject, await inSqlite())
  const place = await inPostgres()
  measured.push({ name, per, held, sqlite, postgres: place && (await bytesPerRow(subject, place)) })
}
if (only === null) measured.push(await measureSales())

const megabytes = (bytes: number): string => (bytes / 1e6).toFixed(bytes < 1e7 ? 1 : 0)
say('| What | Bytes a row, SQLite | PostgreSQL | Rows | MB, SQLite | MB, PostgreSQL |')
say('| --- | ---: | ---: | --- | ---: | ---: |')
for (const { name, per, held, sqlite, postgres } of measured) {
  const cells = [sqlite.toFixed(0), postgres?.toFixed(0) ?? '–', `${held.toLocaleString('en')} a ${per}`, megabytes(sqlite * held), postgres === null ? '–' : megabytes(postgres * held)] // prettier-ignore
  say(`| ${name} | ${cells.join(' | ')} |`)
}
const total = (engine: 'sqlite' | 'postgres'): number =>
  measured.reduce((sum, { per, held, [engine]: bytes }) => {
    const factor = per === 'symbol and year' ? SYMBOLS * YEARS : per === 'symbol, kept 30 days' ? SYMBOLS : per === 'year' ? YEARS : per === 'million sales' ? 0 : 1 // prettier-ignore
    return sum + (bytes ?? 0) * held * factor
  }, 0)
if (only === null) say(`\n${SYMBOLS} symbols for ${YEARS} years, without sales: ${(total('sqlite') / 1e9).toFixed(1)} GB on SQLite, ${(total('postgres') / 1e9).toFixed(1)} GB on PostgreSQL`) // prettier-ignore
