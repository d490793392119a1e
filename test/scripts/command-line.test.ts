import { spawnSync } from 'node:child_process'
import { resolve } from 'node:path'
import { expect } from 'chai'

const root = resolve(import.meta.dirname, '../..')

function run(script: string, flag: string): { status: number | null; out: string; err: string } {
  const file = `scripts/${script}.ts`
  const { status, stdout, stderr } = spawnSync(process.execPath, ['--import', 'tsx/esm', file, flag], {
    cwd: root,
    encoding: 'utf8',
    env: { PATH: process.env['PATH'] },
  })
  return { status, out: stdout, err: stderr }
}

describe('the command line of a script', () => {
  for (const script of ['check', 'doctor', 'keys', 'new-product'])
    it(`prints its usage for --help, and names an unknown flag: ${script}`, () => {
      const asked = run(script, '--help')
      expect([asked.status, asked.err]).to.deep.equal([0, ''])
      expect(asked.out).to.match(new RegExp(`npm run ${script} `))
      const wrong = run(script, '--whatever')
      expect([wrong.status === 0, wrong.out]).to.deep.equal([false, ''])
      expect(wrong.err)
        .to.match(/^Unknown option '--whatever'/)
        .and.not.match(/\n {4}at /)
    })
})
