import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
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
  for (const script of ['backup', 'check', 'docs', 'doctor', 'founding', 'keys', 'new-product', 'types'])
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
})

describe('tollgate', () => {
  const tollgate = (words: readonly string[], env: Record<string, string> = {}, cwd = root) => {
    const { status, stdout, stderr } = spawnSync(process.execPath, [join(root, 'scripts/tollgate.mjs'), ...words], {
      cwd,
      encoding: 'utf8',
      env: { PATH: process.env['PATH'], ...env },
    })
    return { status, out: stdout, err: stderr }
  }

  it('lists its commands, and each of the npm scripts that run it is one of them', () => {
    const { status, out, err } = tollgate(['--help'])
    expect([status, err]).to.deep.equal([0, ''])
    expect(tollgate([])).to.deep.equal({ status, out, err })
    const names = Object.values(scripts).flatMap((script) => /tollgate\.mjs (\S+)$/.exec(script)?.[1] ?? [])
    expect(names).to.include.members(['start', 'check', 'pay'])
    for (const name of names) expect(out).to.match(new RegExp(`^ {2}${name} `, 'm'))
  })

  it('names an unknown command in one line and exits with 2', () => {
    const said = "Unknown command 'sell'. List the commands with: tollgate --help\n"
    expect(tollgate(['sell'])).to.deep.equal({ status: 2, out: '', err: said })
  })

  it('reads .env, and what the environment sets itself takes precedence', () => {
    const folder = mkdtempSync(join(tmpdir(), 'tollgate-env-'))
    try {
      writeFileSync(join(folder, '.env'), 'NETWORK=of-the-file\n')
      expect(tollgate(['check'], {}, folder).err).to.contain('of-the-file')
      const { err } = tollgate(['check'], { NETWORK: 'of-the-environment' }, folder)
      expect(err).to.contain('of-the-environment').and.not.contain('of-the-file')
    } finally {
      rmSync(folder, { recursive: true })
    }
  })
})
