import { spawnSync } from 'node:child_process'
import { resolve } from 'node:path'
import { expect } from 'chai'
import { CASES } from './cases.ts'

const root = resolve(import.meta.dirname, '../..')

function run(...words: readonly string[]): { status: number | null; out: string; err: string } {
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    ['--import', 'tsx/esm', 'test/lab/main.ts', ...words],
    { cwd: root, encoding: 'utf8' },
  )
  return { status, out: stdout, err: stderr }
}

describe('npm run lab', () => {
  it('lists every experiment, and marks those that need recordings', () => {
    const { status, out } = run()
    expect(status).to.equal(0)
    for (const { name, what } of CASES) expect(out).to.contain(` ${name} `).and.to.contain(what)
    expect(out).to.match(/^ {2}products \* /m)
  })

  it('exits with 2 for a name that does not exist, and lists those that do', () => {
    const { status, out, err } = run('nothing')
    expect([status, out]).to.deep.equal([2, ''])
    expect(err)
      .to.match(/^There is no nothing\./)
      .and.to.contain(' chaos ')
  })

  it('gives an experiment its options', () => {
    const { status, out } = run('scale', '--help')
    expect(status).to.equal(0)
    expect(out).to.contain('--plan NAME')
  })

  for (const name of ['calibrate', 'polls', 'chaos', 'soak', 'products', 'claims'])
    it(`prints the usage of ${name} for --help, and names an unknown option`, () => {
      const help = run(name, '--help')
      expect([help.status, help.err]).to.deep.equal([0, ''])
      expect(help.out).to.contain(`npm run lab -- ${name}`)
      const refused = run(name, '--whatever')
      expect([refused.status === 0, refused.out]).to.deep.equal([false, ''])
      expect(refused.err)
        .to.match(/^Unknown option '--whatever'/)
        .and.not.match(/\n {4}at /)
    })

  it('refuses what is no number where it would count to it, because the run would end at once', () => {
    const refusal = { status: 2, out: '', err: '--minutes takes a number, not "ten".\n' }
    expect(run('chaos', '--minutes', 'ten')).to.deep.equal(refusal)
    expect(run('soak', '--minutes', 'ten')).to.deep.equal(refusal)
  })

  it('says of a number that is none which option gave it', () => {
    const { status, err } = run('heap', '--calls', 'many')
    expect([status, err]).to.deep.equal([2, '--calls takes a number from 1 on, not "many".\n'])
  })
})
