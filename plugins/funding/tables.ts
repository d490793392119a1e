/** Recorded tables: a line of names, then rows. Who wrote one may have ordered and named its columns otherwise. */

/** Names in small letters without anything between them: fundingTime and funding_time are one. */
const COLUMNS = {
  time: ['timestamp', 'time', 'ts', 'fundingtime', 'datetime', 'date', 'capturedat'],
  instrument: ['symbol', 'coin', 'instrument', 'contract', 'name', 'market'],
  rate: ['fundingrate', 'lastfundingrate', 'funding', 'rate'],
  markPrice: ['markprice', 'markpx', 'mark'],
} as const

export type Column = keyof typeof COLUMNS
export type TableRow = Readonly<Record<Column, string>>

/** Rows with the cells that are known; one that is not there is empty. No rows where a needed column is missing. */
export function readTable(csv: string): TableRow[] {
  const [head = [], ...rows] = csv
    .replace(/^\uFEFF/, '')
    .split('\n')
    .map(cellsOf)
  const names = head.map((name) => name.toLowerCase().replace(/[^a-z]/g, ''))
  const place = (column: Column): number => {
    const known: readonly string[] = COLUMNS[column]
    return names.indexOf(known.find((name) => names.includes(name)) ?? '?')
  }
  const [time, instrument, rate, markPrice] = [place('time'), place('instrument'), place('rate'), place('markPrice')]
  if (time < 0 || instrument < 0 || rate < 0) return []
  return rows.map((cells) => ({
    time: cells[time] ?? '',
    instrument: cells[instrument] ?? '',
    rate: cells[rate] ?? '',
    markPrice: cells[markPrice] ?? '',
  }))
}

const cellsOf = (line: string): string[] => line.split(',').map((cell) => cell.trim().replace(/^"(.*)"$/, '$1'))
