/** Who and what a text names: measured on labelled texts, and the names that are something else. */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { entitiesOf } from '../../../plugins/potus/entities/enrich.ts'
import { UNSCORED } from '../../../plugins/potus/entities/gazetteer.ts'
import { postRow } from '../../../plugins/potus/sources/truth.ts'
import { fixture, SHARED } from './newsroom.ts'

type Labels = Readonly<Record<string, readonly string[]>>

const ids = (text: string): string[] => entitiesOf(text).map(({ id }) => id)

describe('the entities of a text', () => {
  it('are right in 95 of 100 and found in 70 of 100, on 89 labelled texts', function () {
    if (!existsSync(SHARED)) {
      this.test!.title += ' (skipped: no recorded payloads in ../shared/data/potus)'
      this.skip()
    }
    const { note: _, ...sets } = JSON.parse(fixture('entities.json').toString()) as Record<string, Labels>
    let [right, said, meant, texts] = [0, 0, 0, 0]
    const wrong: string[] = []
    for (const [file, labels] of Object.entries(sets)) {
      const words = textsOf(file)
      for (const [id, wanted] of Object.entries(labels)) {
        const found = ids(words.get(id) as string).filter((one) => !UNSCORED.has(one))
        texts += 1
        said += found.length
        meant += wanted.length
        right += found.filter((one) => wanted.includes(one)).length
        const [surplus, missed] = [
          found.filter((one) => !wanted.includes(one)),
          wanted.filter((one) => !found.includes(one)),
        ]
        if (surplus.length + missed.length > 0) wrong.push(`${id} +${surplus.join(',')} -${missed.join(',')}`)
      }
    }
    const [precision, recall] = [right / said, right / meant]
    this.test!.title += `: precision ${precision.toFixed(3)}, recall ${recall.toFixed(3)} (${right} of ${said} said, ${meant} meant)`
    expect(texts).to.equal(89)
    expect(precision, wrong.join('\n')).to.be.at.least(0.95)
    expect(recall, wrong.join('\n')).to.be.at.least(0.7)
  })

  const cases: readonly (readonly [string, string, readonly string[]])[] = [
    ['Georgia is the state', 'We won Georgia by a lot.', ['place:US-GA']],
    ['Jordan needs a cue', 'Jim Jordan knows that the river is deep.', ['person:jim-jordan']],
    ['Jordan with one', 'The Kingdom of Jordan and the President of Egypt.', ['place:JO', 'place:EG']],
    ['an agency is not a verb', 'WE NEED ACTION NOW, ALL OF US, A LOT OF IT.', []],
    ['a nickname in the middle', 'Jerome “Too Late” Powell should resign.', ['person:jerome-powell']],
    ['a possessive', 'China’s exports and Putin’s answer.', ['place:CN', 'person:vladimir-putin']],
    ['shouting', 'THE STRAIT OF HORMUZ IS OPEN, THANK YOU PAKISTAN!', ['place:strait-of-hormuz', 'place:PK']],
    ['the longer name', 'The New York Times and New York City.', ['org:new-york-times', 'place:new-york-city']],
    ['no tickers', 'A J D ALL NOW IT ON SO.', []],
    ['words that companies took', 'Target the block, visa for the gap, best match, news.', []],
    ['a company', 'Boeing and Eli Lilly build in Indiana.', ['company:BA', 'company:LLY', 'place:US-IN']],
    ['a name nobody wrote down', 'I spoke with Wilhelmina Starling about it.', ['person:wilhelmina-starling']],
  ]
  for (const [what, text, wanted] of cases)
    it(`tell ${what}`, () => {
      expect(ids(text)).to.have.members([...wanted])
    })
})

function textsOf(file: string): Map<string, string> {
  const folder = file.startsWith('executive') ? 'federalregister' : 'truthsocial'
  const content = readFileSync(join(SHARED, folder, file), 'utf8')
  if (file.endsWith('.json')) {
    const { orders } = JSON.parse(content) as { orders: { document_number: string; title: string }[] }
    return new Map(orders.map(({ document_number: id, title }) => [id, title]))
  }
  const rows = content
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line) as Record<string, string>)
  return new Map(
    rows.map((row) => {
      const id = row['id'] ?? (row['post_id'] as string)
      return [id, postRow({ ...row, id, created_at: row['created_at'] ?? row['timestamp_utc'] }).text]
    }),
  )
}
