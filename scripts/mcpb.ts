/**
 * `npm run mcpb`: writes `dist/tollgate.mcpb`, the bridge of `tollgate mcp` as a bundle that desktop clients install with a click
 * (https://github.com/modelcontextprotocol/mcpb). The client asks for the service, the key file and the limits.
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { build, type Plugin } from 'esbuild'
import { strToU8, zipSync } from 'fflate'
import { BUNDLE } from './bundle.ts'

const root = resolve(import.meta.dirname, '..')
const { version, license, engines } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
  readonly version: string
  readonly license: string
  readonly engines: { readonly node: string }
}
const ENTRY = 'server/index.mjs'

const manifest = {
  manifest_version: '0.3',
  name: 'tollgate',
  display_name: 'Tollgate',
  version,
  description: 'Offers the tools of an x402 service, and pays for them within your limits.',
  author: { name: 'Tollgate' },
  license,
  server: {
    type: 'node',
    entry_point: ENTRY,
    mcp_config: {
      command: 'node',
      args: [
        `\${__dirname}/${ENTRY}`,
        '${user_config.service}',
        '--key',
        '@${user_config.key_file}',
        '--max-per-call',
        '${user_config.max_per_call}',
        '--daily',
        '${user_config.daily}',
      ],
    },
  },
  tools_generated: true,
  user_config: {
    service: {
      type: 'string',
      title: 'Service',
      description: 'The address of the service, such as https://gate.example.',
      required: true,
    },
    key_file: {
      type: 'file',
      title: 'Key of the wallet',
      description: 'A file with the private key of the wallet that pays. Put in it only what you mean to spend.',
      required: true,
    },
    max_per_call: {
      type: 'number',
      title: 'Most a call may cost, in dollars',
      description: 'You are asked before a call that costs more.',
      default: 0.1,
      min: 0,
      required: false,
    },
    daily: {
      type: 'number',
      title: 'Most to spend in a day, in dollars',
      description: 'You are asked before a call beyond it.',
      default: 1,
      min: 0,
      required: false,
    },
  },
  compatibility: { platforms: ['darwin', 'linux', 'win32'], runtimes: { node: engines.node } },
}

/** The CommonJS of this package loads its files by computed names, which cannot be bundled; its modules can. */
const jsonc: Plugin = {
  name: 'jsonc-parser',
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^jsonc-parser$/ }, () => ({ path: 'jsonc-parser', namespace: 'modules' }))
    onLoad({ filter: /./, namespace: 'modules' }, () => ({
      contents: "export * as default from 'jsonc-parser/lib/esm/main.js'",
      resolveDir: root,
    }))
  },
}

const { outputFiles } = await build({
  ...BUNDLE,
  // No package is beside the bundle.
  external: [],
  plugins: [jsonc],
  absWorkingDir: root,
  entryPoints: ['scripts/mcp.ts'],
  minify: true,
  legalComments: 'none',
  outfile: ENTRY,
  write: false,
})
const [bundle] = outputFiles
if (!bundle) throw new Error('esbuild wrote no bundle.')
const zip = zipSync({
  'manifest.json': strToU8(`${JSON.stringify(manifest, null, 2)}\n`),
  [ENTRY]: bundle.contents,
  LICENSE: readFileSync(join(root, 'LICENSE')),
})
const file = join(root, 'dist', 'tollgate.mcpb')
mkdirSync(join(root, 'dist'), { recursive: true })
writeFileSync(file, zip)
process.stdout.write(`${file}: ${(zip.length / 1e6).toFixed(1)} MB\n`)
