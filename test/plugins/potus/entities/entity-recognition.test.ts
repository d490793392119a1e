/** Which people, places and organisations a text names: measured on labelled texts, and by known ambiguities. */
import { existsSync } from 'node:fs'
import { expect } from 'chai'
import { recogniseEntities } from '../../../../plugins/potus/entities/entity-recognition.ts'
import { LABELLED, recordedTexts, scoreEntities, type Texts } from './entity-scores.ts'
import { SHARED } from '../test-feed.ts'

const ids = (text: string): string[] => recogniseEntities(text).map(({ id }) => id)

describe('the rules that recognise entities', () => {
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
    ['read Georgia as the state', 'We won Georgia by a lot.', ['place:US-GA']],
    [
      'do not read Jordan as the country without a cue',
      'Jim Jordan knows that the river is deep.',
      ['person:jim-jordan'],
    ],
    [
      'read Jordan as the country with a cue',
      'The Kingdom of Jordan and the President of Egypt.',
      ['place:JO', 'place:EG'],
    ],
    ['do not read words in capitals as agencies', 'WE NEED ACTION NOW, ALL OF US, A LOT OF IT.', []],
    [
      'recognise a name with a nickname in the middle',
      'Jerome “Too Late” Powell should resign.',
      ['person:jerome-powell'],
    ],
    ['recognise possessives', 'China’s exports and Putin’s answer.', ['place:CN', 'person:vladimir-putin']],
    [
      'recognise names in capitals',
      'THE STRAIT OF HORMUZ IS OPEN, THANK YOU PAKISTAN!',
      ['place:strait-of-hormuz', 'place:PK'],
    ],
    ['prefer the longer name', 'The New York Times and New York City.', ['org:new-york-times', 'place:new-york-city']],
    ['do not match ticker symbols', 'A J D ALL NOW IT ON SO.', []],
    ['do not read ordinary words as companies', 'Target the block, visa for the gap, best match, news.', []],
    ['recognise companies', 'Boeing and Eli Lilly build in Indiana.', ['company:BA', 'company:LLY', 'place:US-IN']],
    [
      'prefer a family name to a place of the same name',
      'Christopher Wray and Lisa Monaco signed it.',
      ['person:christopher-wray', 'person:lisa-monaco'],
    ],
    ['do not read an operation as a person', 'Operation Arctic Frost began in Monaco.', ['place:MC']],
    [
      'do not count the person after whom a ship, a room or a road is named',
      'The USS George Washington, the Lincoln Bathroom, the Ronald Reagan Boulevard.',
      [],
    ],
    ['read a district of a state senate as the state', 'He runs in Indiana’s 38th Senate District.', ['place:US-IN']],
    [
      'recognise a university that is named after a state',
      'She studied at the University of Georgia and at George Mason University.',
      ['org:university-of-georgia', 'org:george-mason-university'],
    ],
    ['recognise a county that is named after a town', 'The sheriff of Palm Beach County.', ['place:palm-beach-county']],
    [
      'do not take another member of a family for the best-known one',
      'They remember Davy Crockett and Colin Powell.',
      ['person:davy-crockett', 'person:colin-powell'],
    ],
    [
      'skip titles before a name',
      'Colonel Laurie Buckhout met Judge Eric Melgren.',
      ['person:laurie-buckhout', 'person:eric-melgren'],
    ],
    [
      'recognise a person with a short given name',
      'Congressman Andrew Ogles, or Andy, or Mike Lawler.',
      ['person:bioguide-O000175', 'person:bioguide-L000599'],
    ],
    [
      'recognise two countries joined by a hyphen',
      'An Israel-Lebanon truce; an Ex-FBI agent.',
      ['place:IL', 'place:LB', 'org:fbi'],
    ],
    [
      'recognise a committee by its form',
      'He chairs the House Ways & Means Committee.',
      ['org:house-ways-and-means-committee'],
    ],
    [
      'do not read a day, a deed or a community as a person',
      'National Angel Family Day and an Op Ed about the Foster Community.',
      [],
    ],
    [
      'recognise a law firm',
      'Addressing Risks From Paul Weiss and Nelson Mullins.',
      ['org:paul-weiss', 'org:nelson-mullins'],
    ],
    [
      'prefer the state to a foreign capital of the same name',
      'We were in Paris, Texas, and in Lebanon, Ohio.',
      ['place:US-TX', 'place:US-OH'],
    ],
    [
      'recognise names in words that are glued together',
      'Message on the BirthdayThe White HouseJanuary 17 of theRepublic ofGuatemala',
      ['org:white-house', 'place:GT'],
    ],
    ['recognise names in mathematical letters', '𝗗𝗲𝗮𝗹 𝘄𝗶𝘁𝗵 𝗝𝗮𝗽𝗮𝗻', ['place:JP']],
    [
      'recognise a name with a middle initial',
      'Voting were Lisa D. Cook; Michael S. Barr.',
      ['person:lisa-cook', 'person:michael-barr'],
    ],
    [
      'recognise a person who is not in the gazetteer',
      'I spoke with Wilhelmina Starling about it.',
      ['person:wilhelmina-starling'],
    ],
    [
      'recognise persons between sentences that name nobody',
      'It rains. I spoke with Wilhelmina Starling. It was close!\nThey remember Colin Powell. We won.',
      ['person:wilhelmina-starling', 'person:colin-powell'],
    ],
  ]
  for (const [behaviour, text, expected] of cases)
    it(behaviour, () => {
      expect(ids(text)).to.have.members([...expected])
    })
})
