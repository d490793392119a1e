import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { expect } from 'chai'

const root = resolve(import.meta.dirname, '../..')
const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
  readonly scripts: Readonly<Record<string, string>>
}

/** Runs a script as package.json says. */
function run(script: string, ...flags: readonly string[]): { status: number | null; out: string; err: string } {
  const [, ...words] = (scripts[script] as string).split(' ')
  const { status, stdout, stderr } = spawnSync(process.execPath, [...words, ...flags], {
    cwd: root,
    encoding: 'utf8',
    env: { PATH: process.env['PATH'] },
  })
  return { status, out: stdout, err: stderr }
}

describe('the command line', () => {
  for (const script of [
    'backup',
    'calibrate',
    'check',
    'docs',
    'doctor',
    'founding',
    'keys',
    'new-product',
    'polls',
    'types',
  ])
    it(`of npm run ${script} prints its usage for --help, and names an unknown flag`, () => {
      const help = run(script, '--help')
      expect([help.status, help.err]).to.deep.equal([0, ''])
      expect(help.out).to.match(new RegExp(`npm run ${script} `))
      const refused = run(script, '--whatever')
      expect([refused.status === 0, refused.out]).to.deep.equal([false, ''])
      expect(refused.err)
        .to.match(/^Unknown option '--whatever'/)
        .and.not.match(/\n {4}at /)
    })

  it('of a run that counts refuses what is no number, because counting to it would end at once', () => {
    const refusal = { status: 2, out: '', err: '--minutes takes a number, not "ten".\n' }
    expect(run('chaos', '--minutes', 'ten')).to.deep.equal(refusal)
    expect(run('soak', '--minutes', 'ten')).to.deep.equal(refusal)
  })
})
