import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { atLeast, claiming, type FoundClaim, shown } from '../support/measure.ts'
import { differences, type FiguresFile, saveFigures } from './claim.ts'

const CLAIM: Omit<FoundClaim, 'met'> = {
  claimed: 'at least half',
  measured: '0.6',
  on: 'one recording',
  start: '2025-01-01T00:00:00Z',
  end: '2025-02-01T00:00:00Z',
  cases: 10,
  data_mode: 'replay',
}

describe('a claim', () => {
  const half = atLeast('part', 'share', 0.6, 0.5)
  const all = atLeast('part', 'other share', 0.9, 1)

  it('is met if every figure that it names meets its limit', () => {
    const metOf = (...[measures, isJudged]: [Parameters<typeof claiming>[0], ((name: string) => boolean)?]) =>
      claiming(measures, CLAIM, isJudged).flatMap(({ claim }) => (claim ? [claim.met] : []))
    expect(metOf([half])).to.deep.equal([true])
    expect(metOf([half, all])).to.deep.equal([false])
    expect(metOf([all, half], (name) => name === 'share')).to.deep.equal([true])
    expect(metOf([shown('part', 'without a limit', '1')])).to.deep.equal([false])
  })

  it('is saved with the date, in a file as prettier formats it', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'claims-'))
    try {
      await saveFigures('plugins/gold/figures.json', { claims: [{ ...CLAIM, met: true }], tables: [] }, folder)
      const text = readFileSync(join(folder, 'plugins/gold/figures.json'), 'utf8')
      const { claims } = JSON.parse(text) as FiguresFile
      expect(claims).to.have.length(1)
      expect(claims[0]).to.deep.include({ ...CLAIM, met: true })
      expect(claims[0]!.measured_on).to.match(/^\d{4}-\d\d-\d\d$/)
      expect(text)
        .to.match(/^\{\n {2}"claims": \[\n/)
        .and.to.match(/\n$/)
    } finally {
      rmSync(folder, { recursive: true })
    }
  })
})

describe('two versions of a file of figures', () => {
  const file = (figures: object): object => ({
    claims: [{ ...CLAIM, met: true, measured_on: '2026-01-01' }],
    ...figures,
  })

  it('do not differ by the date, by times taken, or by less than a hundredth', () => {
    const old = file({
      ratio: 2.25,
      seconds: 9,
      rows: [
        ['CPU seconds', '1.76', '≤ 3'],
        ['share (24/31)', '0.774'],
      ],
    })
    const now = file({
      ratio: 2.26,
      seconds: 99,
      rows: [
        ['CPU seconds', '2.90', '≤ 3'],
        ['share (24/31)', '0.775'],
      ],
    })
    expect(differences(old, { ...now, claims: [{ ...CLAIM, met: true, measured_on: '2026-02-01' }] })).to.deep.equal([])
  })

  it('differ by a figure, a verdict, a word and a row', () => {
    expect(differences({ ratio: 2.25 }, { ratio: 2.2 })).to.deep.equal(['ratio: 2.25, now 2.2'])
    expect(differences({ claims: [{ met: true }] }, { claims: [{ met: false }] })).to.deep.equal([
      'claims.0.met: true, now false',
    ])
    expect(differences(['3 of 6 met'], ['5 of 6 met'])).to.deep.equal(['0: "3 of 6 met", now "5 of 6 met"'])
    expect(differences(['3 of 6'], ['3 in 6'])).to.have.length(1)
    expect(
      differences(
        [['a', 1]],
        [
          ['a', 1],
          ['b', 2],
        ],
      ),
    ).to.have.length(1)
  })
})
