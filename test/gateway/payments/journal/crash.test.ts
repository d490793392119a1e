import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { openJournal } from '../../../../gateway/payments/journal/open-journal.ts'
import { MOVES, type PaymentState } from '../../../../gateway/payments/journal/payment-states.ts'
import { longAnswers, PATHS, SHORT_ANSWER } from '../../../contracts/journal-payments.ts'
import { start } from '../../../support/process.ts'

const PROGRAM = 'test/contracts/journal-process.ts'
const STATES = Object.keys(PATHS) as PaymentState[]

const keysOf = (output: string): string[] => [...output.matchAll(/^key (\S+)\n/gm)].map((match) => match[1] as string)

describe('the journal of a killed process', () => {
  let folder: string
  before(() => {
    folder = mkdtempSync(join(tmpdir(), 'journal-'))
  })
  after(() => rmSync(folder, { recursive: true }))

  for (const state of STATES)
    it(`opens again with a payment that is ${state}, and knows that the process which owned it is dead`, async () => {
      const file = join(folder, `${state}.sqlite`)
      const { child, ended, output } = await start(PROGRAM, /^key \S+\n/m, {}, [file, state])
      child.kill('SIGKILL')
      expect(await ended).to.equal('SIGKILL')
      const [key = ''] = keysOf(output())
      const journal = await openJournal({ file })
      try {
        expect(await journal.find(key)).to.include({ state, attempt: 1 })
        const states = (await journal.events(key)).map((event) => event.state)
        expect(states).to.deep.equal(['reserved', ...PATHS[state].map((step) => MOVES[step].to)])
        const open = await journal.openPayments()
        expect(open).to.have.length(['reserved', 'answered', 'submitted'].includes(state) ? 1 : 0)
        const liveOwners = await journal.liveOwners()
        for (const { owner } of open) expect(liveOwners.has(owner)).to.equal(false)
      } finally {
        await journal.close()
      }
    })

  it('has every change that was confirmed, however many were in progress, and no payment without its whole answer', async () => {
    const file = join(folder, 'busy.sqlite')
    const { child, ended, output } = await start(PROGRAM, /(?:key \S+\n){100}/, {}, [file])
    child.kill('SIGKILL')
    await ended
    const confirmed = keysOf(output())
    expect(confirmed.length).to.be.at.least(100)
    const journal = await openJournal({ file })
    try {
      for (const key of confirmed) expect(await journal.find(key)).to.include({ state: 'settled' })
      expect((await journal.openPayments()).length).to.be.at.most(8)
      let long = 0
      for (const { key, answer } of await journal.list({ states: ['submitted', 'settled'], limit: 100_000 })) {
        const text = answer?.body.toString()
        const possible = [SHORT_ANSWER, ...longAnswers(key)].map(({ body }) => body.toString())
        expect(possible, key).to.include(text)
        if (text !== SHORT_ANSWER.body.toString()) long += 1
      }
      expect(long).to.be.greaterThan(40)
    } finally {
      await journal.close()
    }
  })
})
