/** Long JSON lists, read row by row from pieces of any size. */
import { expect } from 'chai'
import { jsonRows } from '../../../../plugins/potus/sources/json-rows.ts'
import { FeedError } from '../../../../plugins/potus/sources/source.ts'

/** The rows of a text that arrives in pieces of this size; the reason if it cannot be read. */
async function rowsOf(text: string | Buffer, size: number): Promise<unknown> {
  const bytes = Buffer.from(text)
  async function* pieces(): AsyncGenerator<Buffer> {
    for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size)
  }
  const rows: unknown[] = []
  try {
    for await (const row of jsonRows(pieces())) rows.push(row)
    return rows
  } catch (error) {
    if (error instanceof FeedError) return error.reason
    throw error
  }
}

describe('a long JSON list', () => {
  const rows = [
    {
      id: '1',
      text: 'brackets ] } [ { and a quote " and a backslash \\',
      media: [{ url: 'a' }, []],
      deep: { a: { b: [1] } },
    },
    { id: '2', text: 'na\u00efve \ud83c\uddfa\ud83c\uddf8 \u2014 end', counts: [1, 2, 3] },
    {},
  ]

  it('gives the same rows whatever the sizes of its pieces are', async () => {
    for (const text of [JSON.stringify(rows), `\uFEFF ${JSON.stringify(rows, null, 2)}\n`])
      for (const size of [1, 2, 3, 7, 64, 100_000]) expect(await rowsOf(text, size), `${size}`).to.deep.equal(rows)
  })

  it('skips members that are not objects', async () => {
    expect(await rowsOf('[1, null, "a ] b", [2, [3]], {"id": "4"}, true]', 5)).to.deep.equal([{ id: '4' }])
    expect(await rowsOf('[]', 1)).to.deep.equal([])
  })

  it('is refused with a reason if it is something else, damaged or cut', async () => {
    const reasons = await Promise.all(
      ['', '  ', '{"id": 1}', '<html></html>', '[{"id": 1}', '[{"id": 1}] more', '[{"id": }]'].map((text) =>
        rowsOf(text, 4),
      ),
    )
    expect(reasons).to.deep.equal(['empty', 'empty', 'wrong_shape', 'wrong_shape', 'truncated', 'not_json', 'not_json'])
  })
})
