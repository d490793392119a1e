import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { expect } from 'chai'
import { shopFiles } from '../../scripts/init/texts.ts'
import { openGateway } from '../support/gateway.ts'

const example = resolve(import.meta.dirname, '../../docs/examples/container/Dockerfile')

/** Runs the health check of an image as Docker does, and returns its exit code. */
async function check(dockerfile: string, port: string): Promise<number> {
  const [, command = ''] = /^HEALTHCHECK [^[]*CMD (\[.*\])$/m.exec(dockerfile) ?? []
  const [program = '', ...args] = JSON.parse(command) as string[]
  const child = spawn(program, args, { env: { PATH: process.env['PATH'], PORT: port }, stdio: 'ignore' })
  const [code] = (await once(child, 'exit')) as [number]
  return code
}

describe('the health check of a container', () => {
  const images = { 'docs/examples': readFileSync(example, 'utf8'), 'a new shop': shopFiles['Dockerfile'] ?? '' }
  for (const [name, dockerfile] of Object.entries(images))
    it(`of ${name} passes while the gateway answers, also while nothing can be settled, and fails when it is gone`, async () => {
      const shop = await openGateway()
      const { port } = new URL(shop.url)
      try {
        expect(await check(dockerfile, port)).to.equal(0)
        shop.settler.down('no node')
        expect(await check(dockerfile, port)).to.equal(0)
      } finally {
        await shop.close()
      }
      expect(await check(dockerfile, port)).to.equal(1)
    })
})
