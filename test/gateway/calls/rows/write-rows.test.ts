import { expect } from 'chai'
import fc from 'fast-check'
import { parquetMetadata, parquetReadObjects } from 'hyparquet'
import { type Row, tableOf } from '../../../../gateway/catalog/table.ts'
import { writeRows } from '../../../../gateway/calls/rows/write-rows.ts'
import type { JsonSchema } from '../../../../gateway/plugin/catalog.ts'
import { catalogOf, OPERATION } from '../../../support/operation.ts'

const nullable = (type: string): JsonSchema => ({ type: [type, 'null'] })
const ITEM: JsonSchema = {
  type: 'object',
  properties: {
    at: { type: 'string', format: 'date-time' },
    count: { anyOf: [{ type: 'integer' }, { type: 'null' }] },
    price: nullable('number'),
    ok: nullable('boolean'),
    note: { enum: ['a "quoted", text\r\nof two lines', '', 'plain', null] },
    book: { type: 'object' },
  },
}

function table(items: JsonSchema = ITEM) {
  const response = { type: 'object', properties: { list: { type: 'array', items } } }
  const operation = { ...OPERATION, response, rows: 'list' }
  return tableOf(operation, catalogOf(operation))!
}

async function written(format: 'csv' | 'ndjson' | 'parquet', rows: readonly Row[], items?: JsonSchema) {
  return Buffer.concat(await writeRows(format, table(items), rows, { data_mode: 'sample' }))
}

/** Reads CSV as RFC 4180 describes it. */
function fromCsv(bytes: Buffer): Record<string, string>[] {
  const records: string[][] = [[]]
  for (const [, quoted, plain, end] of bytes.toString().matchAll(/(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r\n|$)/g)) {
    records.at(-1)!.push(quoted?.replaceAll('""', '"') ?? plain!)
    if (end === '\r\n') records.push([])
  }
  const [names = [], ...rows] = records.slice(0, -1)
  return rows.map((cells) => Object.fromEntries(names.map((name, at) => [name, cells[at]!])))
}

async function fromParquet(bytes: Buffer): Promise<Record<string, unknown>[]> {
  const file = new Uint8Array(bytes).buffer
  return parquetReadObjects({ file })
}

const fields = {
  at: fc.date({ min: new Date(0), max: new Date('2100-01-01'), noInvalidDate: true }).map((date) => date.toISOString()),
  count: fc.option(fc.maxSafeInteger()),
  price: fc.option(fc.double({ noNaN: true, noDefaultInfinity: true }).map((value) => value + 0)),
  ok: fc.option(fc.boolean()),
  note: fc.option(fc.string({ unit: 'grapheme' })),
  book: fc.option(fc.dictionary(fc.string(), fc.integer(), { maxKeys: 3 }).map((value) => ({ ...value }))),
}
const row = fc.record(fields)

describe('rows', () => {
  it('are the same when they are read back, from each format', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(row, { minLength: 1, maxLength: 30 }), async (drawn) => {
        const rows = drawn.map((each) => ({ ...each, price: each.price === 0 ? 0 : each.price }))
        const lines = (await written('ndjson', rows)).toString().split('\n')
        expect(lines.pop()).to.equal('')
        expect(lines.map((line) => JSON.parse(line) as unknown)).to.deep.equal(rows)

        const text = (value: unknown): string =>
          value === null ? '' : typeof value === 'string' ? value : JSON.stringify(value)
        const records = fromCsv(await written('csv', rows))
        expect(records).to.deep.equal(
          rows.map((each) => Object.fromEntries(Object.entries(each).map(([name, value]) => [name, text(value)]))),
        )

        const read = await fromParquet(await written('parquet', rows))
        expect(read).to.deep.equal(
          rows.map((each) => ({
            ...each,
            at: new Date(each.at),
            count: each.count === null ? null : BigInt(each.count),
          })),
        )
      }),
      { numRuns: 60 },
    )
  })

  it('have the columns and types of the schema, also if there are none or all values are null', async () => {
    const types = async (rows: readonly Row[]) =>
      parquetMetadata(new Uint8Array(await written('parquet', rows)).buffer)
        .schema.slice(1)
        .map(({ name, type, converted_type: converted }) => [name, type, converted])
    const expected = [
      ['at', 'INT64', 'TIMESTAMP_MILLIS'],
      ['count', 'INT64', undefined],
      ['price', 'DOUBLE', undefined],
      ['ok', 'BOOLEAN', undefined],
      ['note', 'BYTE_ARRAY', 'UTF8'],
      ['book', 'BYTE_ARRAY', 'JSON'],
    ]
    expect(await types([])).to.deep.equal(expected)
    expect(await types([{ at: null }])).to.deep.equal(expected)
    expect((await written('csv', [])).toString()).to.equal('at,count,price,ok,note,book\r\n')
    expect(await written('ndjson', [])).to.have.length(0)
  })

  it('lose nothing where values do not fit the schema, or where it describes none', async () => {
    const rows = [
      { at: '2026-01-01T00:00:00.123456Z', count: 0.5, price: 'n/a', more: [1] },
      { at: null, count: 2, price: 1, more: null },
    ]
    const [first] = await fromParquet(await written('parquet', rows))
    expect(first).to.include({ at: '2026-01-01T00:00:00.123456Z', count: 0.5, price: 'n/a' })
    expect(first!['more']).to.deep.equal([1])
    const free = await fromParquet(
      await written('parquet', [{ n: 1, s: 'x', b: true }, { n: 2.5 }], { type: 'object' }),
    )
    expect(free).to.deep.equal([
      { n: 1, s: 'x', b: true },
      { n: 2.5, s: null, b: null },
    ])
  })

  it('come with what the answer says beside them in the metadata of Parquet', async () => {
    const { key_value_metadata: pairs } = parquetMetadata(new Uint8Array(await written('parquet', [])).buffer)
    expect(pairs).to.deep.include({ key: 'answer', value: '{"data_mode":"sample"}' })
  })

  it('are written in slices that let other work go on, 100,000 of them in full', async () => {
    const rows = Array.from({ length: 100_000 }, (_, at) => ({
      at: new Date(at * 60_000).toISOString(),
      count: at,
      price: at / 7,
      ok: at % 2 === 0,
      note: at % 3 === 0 ? null : 'plain',
      book: null,
    }))
    for (const format of ['csv', 'ndjson', 'parquet'] as const) {
      let turns = 0
      const turn = setInterval(() => (turns += 1), 0)
      const bytes = await written(format, rows)
      clearInterval(turn)
      expect(turns, format).to.be.at.least(5)
      if (format === 'ndjson') expect(bytes.toString().split('\n')).to.have.length(100_001)
      if (format === 'csv') expect(fromCsv(bytes)).to.have.length(100_000)
      if (format !== 'parquet') continue
      const read = await fromParquet(bytes)
      expect(read).to.have.length(100_000)
      expect(read.at(-1)).to.deep.equal({ ...rows.at(-1), at: new Date(99_999 * 60_000), count: 99_999n })
    }
  })
})
