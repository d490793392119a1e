/** A ledger of round trips, as the form of the website sends it. */

export interface Form {
  /** The content-type. */
  readonly type: string
  readonly body: Buffer
}

/** Returns the form with a ledger of so many rows, of 75 bytes each. */
export function ledgerForm(rowCount: number): Form {
  const start = Date.UTC(2021, 0, 4)
  const price = (at: number): string => (100 + 10 * Math.sin(at / 1000) + Math.cos(at * 7)).toFixed(2)
  const rows = Array.from({ length: rowCount }, (_, at) => {
    const time = (minutes: number): string => new Date(start + (at * 10 + minutes) * 60_000).toISOString()
    return `XYZ,${at % 3 === 0 ? 'short' : 'long'},10,${time(0)},${price(at)},${time(9)},${price(at + 1)}`
  })
  const csv = ['symbol,side,qty,entry_time,entry_price,exit_time,exit_price', ...rows, ''].join('\n')
  const field = 'Content-Disposition: form-data; name="file"; filename="ledger.csv"\r\nContent-Type: text/csv'
  return {
    type: 'multipart/form-data; boundary=ledger',
    body: Buffer.from(`--ledger\r\n${field}\r\n\r\n${csv}\r\n--ledger--\r\n`),
  }
}
