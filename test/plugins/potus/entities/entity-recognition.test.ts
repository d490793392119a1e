/** Who and what a text names: measured on labelled texts, and the names that are something else. */
import { existsSync } from 'node:fs'
import { expect } from 'chai'
import { recogniseEntities } from '../../../../plugins/potus/entities/entity-recognition.ts'
import { LABELLED, recordedTexts, scoreEntities, type Texts } from '../../../../scripts/bench/potus/entity-scores.ts'
import { SHARED } from '../newsroom.ts'

const ids = (text: string): string[] => recogniseEntities(text).map(({ id }) => id)

describe('the entities of a text', () => {
  let recorded: Texts
  before(async () => {
    if (existsSync(SHARED)) recorded = await recordedTexts(SHARED)
  })
  for (const set of LABELLED)
    it(`reach a precision of 0.95 and a recall of 0.70 on the recorded texts of ${set}`, function () {
      if (!existsSync(SHARED)) {
        this.test!.title += ' (skipped: no recorded payloads in ../shared/data/potus)'
        this.skip()
      }
      const { texts, found, labelled, correct, precision, recall, differences } = scoreEntities(recorded, set)
      this.test!.title += `: precision ${precision.toFixed(3)}, recall ${recall.toFixed(3)} (${correct} of ${found} found, ${labelled} labelled)`
      expect(texts).to.be.at.least(21)
      expect(precision, differences.join('\n')).to.be.at.least(0.95)
      expect(recall, differences.join('\n')).to.be.at.least(0.7)
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
    [
      'a ship, a hall, a foundation',
      'The USS George Washington, the Lincoln Bathroom, the Ronald Reagan Boulevard.',
      [],
    ],
    ['a district of a state’s senate', 'He runs in Indiana’s 38th Senate District.', ['place:US-IN']],
    [
      'a university named like a state',
      'She studied at the University of Georgia and at George Mason University.',
      ['org:university-of-georgia', 'org:george-mason-university'],
    ],
    ['a county named like a town', 'The sheriff of Palm Beach County.', ['place:palm-beach-county']],
    [
      'somebody else of the family',
      'They remember Davy Crockett and Colin Powell.',
      ['person:davy-crockett', 'person:colin-powell'],
    ],
    [
      'titles before a name',
      'Colonel Laurie Buckhout met Judge Eric Melgren.',
      ['person:laurie-buckhout', 'person:eric-melgren'],
    ],
    [
      'a short given name',
      'Congressman Andrew Ogles, or Andy, or Mike Lawler.',
      ['person:bioguide-O000175', 'person:bioguide-L000599'],
    ],
    ['two countries with a hyphen', 'An Israel-Lebanon truce; an Ex-FBI agent.', ['place:IL', 'place:LB', 'org:fbi']],
    ['a committee by its form', 'He chairs the House Ways & Means Committee.', ['org:house-ways-and-means-committee']],
    ['a day, a deed, a family', 'National Angel Family Day and an Op Ed about the Foster Community.', []],
    ['a law firm', 'Addressing Risks From Paul Weiss and Nelson Mullins.', ['org:paul-weiss', 'org:nelson-mullins']],
    ['a town named like a capital', 'We were in Paris, Texas, and in Lebanon, Ohio.', ['place:US-TX', 'place:US-OH']],
    [
      'glued words',
      'Message on the BirthdayThe White HouseJanuary 17 of theRepublic ofGuatemala',
      ['org:white-house', 'place:GT'],
    ],
    ['letters of another type', '𝗗𝗲𝗮𝗹 𝘄𝗶𝘁𝗵 𝗝𝗮𝗽𝗮𝗻', ['place:JP']],
    ['a middle initial', 'Voting were Lisa D. Cook; Michael S. Barr.', ['person:lisa-cook', 'person:michael-barr']],
    ['a name nobody wrote down', 'I spoke with Wilhelmina Starling about it.', ['person:wilhelmina-starling']],
  ]
  for (const [what, text, wanted] of cases)
    it(`tell ${what}`, () => {
      expect(ids(text)).to.have.members([...wanted])
    })
})
