/** The bundle of `npm run mcpb`, installed and configured as a desktop client does it. */
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { expect } from 'chai'
import { unzipSync } from 'fflate'
import { openSandboxGateway, type SandboxGateway, SHOP } from '../support/sandbox.ts'

const root = resolve(import.meta.dirname, '../..')

interface Manifest {
  readonly version: string
  readonly server: { readonly entry_point: string; readonly mcp_config: { readonly args: readonly string[] } }
  readonly user_config: Readonly<Record<string, { readonly default?: unknown; readonly required: boolean }>>
}

describe('npm run mcpb', function () {
  this.timeout(120_000)
  let shop: SandboxGateway
  let folder: string
  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'mcpb-'))
    shop = await openSandboxGateway(SHOP)
  })
  after(async () => {
    await shop?.close()
    rmSync(folder, { recursive: true, force: true })
  })

  it('writes a bundle that runs without this project, buys, and keeps to its limits', async () => {
    execFileSync(process.execPath, ['--import', 'tsx/esm', 'scripts/mcpb.ts'], { cwd: root })
    const files = unzipSync(readFileSync(join(root, 'dist/tollgate.mcpb')))
    for (const [name, content] of Object.entries(files)) {
      mkdirSync(dirname(join(folder, name)), { recursive: true })
      writeFileSync(join(folder, name), content)
    }
    const manifest = JSON.parse(readFileSync(join(folder, 'manifest.json'), 'utf8')) as Manifest
    expect(files).to.have.property(manifest.server.entry_point)
    const key = join(folder, 'key')
    writeFileSync(key, shop.sandbox.buyer.privateKey, { mode: 0o600 })
    const defaults = Object.entries(manifest.user_config).map(([name, { default: value }]) => [name, value])
    const chosen: Readonly<Record<string, unknown>> = {
      ...Object.fromEntries(defaults),
      service: shop.url,
      key_file: key,
      daily: 0.006,
    }
    const args = manifest.server.mcp_config.args.map((argument) =>
      argument
        .replace('${__dirname}', folder)
        .replaceAll(/\$\{user_config\.(\w+)\}/g, (_, name: string) => String(chosen[name])),
    )
    const client = new Client({ name: 'host', version: '1' })
    await client.connect(
      new StdioClientTransport({
        command: process.execPath,
        args,
        cwd: folder,
        env: { HOME: folder },
        stderr: 'ignore',
      }),
    )
    await shop.moved()
    const call = (word: string) => client.callTool({ name: 'get_echo', arguments: { word } })
    expect((await call('one')).structuredContent).to.include({ said: 'one' })
    expect(await call('two')).to.include({ isError: true })
    expect((await shop.moved()).buyer).to.equal(-5_000n)
    await client.close()
  })
})
