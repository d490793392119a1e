/** Who and what a text names: measured on labelled texts, and the names that are something else. */
import { existsSync } from 'node:fs'
import { expect } from 'chai'
import { entitiesOf } from '../../../plugins/potus/entities/enrich.ts'
import { LABELLED, scoreEntities } from '../../../scripts/bench/potus/entities.ts'
import { SHARED } from './newsroom.ts'

const ids = (text: string): string[] => entitiesOf(text).map(({ id }) => id)

describe('the entities of a text', () => {
  for (const set of LABELLED)
    it(`are right in 95 of 100 and found in 70 of 100, on the labelled texts of ${set}`, function () {
      if (!existsSync(SHARED)) {
        this.test!.title += ' (skipped: no recorded payloads in ../shared/data/potus)'
        this.skip()
      }
      const { texts, said, meant, right, precision, recall, wrong } = scoreEntities(SHARED, set)
      this.test!.title += `: precision ${precision.toFixed(3)}, recall ${recall.toFixed(3)} (${right} of ${said} said, ${meant} meant)`
      expect(texts).to.be.at.least(21)
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
    [
      'a family named like a place',
      'Christopher Wray and Lisa Monaco signed it.',
      ['person:christopher-wray', 'person:lisa-monaco'],
    ],
    ['an operation', 'Operation Arctic Frost began in Monaco.', ['place:MC']],
    ['a name nobody wrote down', 'I spoke with Wilhelmina Starling about it.', ['person:wilhelmina-starling']],
  ]
  for (const [what, text, wanted] of cases)
    it(`tell ${what}`, () => {
      expect(ids(text)).to.have.members([...wanted])
    })
})
