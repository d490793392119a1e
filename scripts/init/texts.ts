/** The files of a new shop that do not depend on what it sells. They are a starting point for its owner. */

/** The parts of a package.json that are read or written. */
export interface PackageFile {
  readonly name?: string
  readonly version?: string
  readonly private?: boolean
  readonly type?: string
  readonly scripts?: Readonly<Record<string, string>>
  readonly dependencies?: Readonly<Record<string, string>>
  readonly devDependencies?: Readonly<Record<string, string>>
}

/**
 * Returns the package.json of a shop: what was there before, with the scripts and packages that a shop needs. Tests are
 * compiled and checked with the versions that the gateway itself uses.
 *
 * @param former what the folder had
 * @param own the package.json of the gateway
 */
export function withShop(former: PackageFile, name: string, own: PackageFile): PackageFile {
  const { version = '', dependencies: { tsx = '*' } = {}, devDependencies = {} } = own
  const { typescript = '*', '@types/node': types = '*' } = devDependencies
  return {
    name,
    version: '0.1.0',
    ...former,
    private: true,
    type: 'module',
    scripts: {
      ...former.scripts,
      start: 'tollgate start',
      dev: 'tollgate dev',
      check: 'tollgate check',
      types: 'tollgate types',
      'check:types': 'tsc',
      test: 'node --import tsx/esm --test test/*.test.ts',
    },
    dependencies: { tollgate: `^${version}`, ...former.dependencies },
    devDependencies: { '@types/node': types, tsx, typescript, ...former.devDependencies },
  }
}

const TSCONFIG = {
  compilerOptions: {
    target: 'es2022',
    lib: ['es2023'],
    module: 'nodenext',
    types: ['node'],
    strict: true,
    noEmit: true,
    allowImportingTsExtensions: true,
    erasableSyntaxOnly: true,
    verbatimModuleSyntax: true,
    skipLibCheck: true,
  },
  include: ['plugins', 'schemas', 'test'],
}

/** The files by path. */
export const shopFiles: Readonly<Record<string, string>> = {
  '.env.example': `# Copy this file to .env, which is read at every start and watched. Without settings the gateway runs on a local chain with test money.
#NETWORK=base
#PAY_TO=0x…                       the address that receives the money
#SETTLE_RPC_URL=https://…         with SETTLE_KEY, a key that pays the gas: npx tollgate keys
#SETTLE_KEY=0x…
#BASE_URL=https://your.service    the public address
#TRUSTED_PROXIES=127.0.0.1
#DATA_MODE=online                 real data: what real money buys
#OPERATOR_TOKEN=…                 opens /operator
#PAYMENT_WEBHOOK_URL=https://…    is told of every payment, signed with WEBHOOK_SECRET
#WEBHOOK_SECRET=whsec_…           24 to 64 random bytes in base64: echo whsec_$(openssl rand -base64 32)
`,
  '.gitignore': 'node_modules\n/data/\n/backups/\n.env\nkeys.env\n*.log\n',
  '.dockerignore': 'node_modules\ndata\nbackups\n.env\nkeys.env\n.git\n',
  Dockerfile: `FROM node:22-bookworm-slim
WORKDIR /srv/shop
COPY package.json package-lock.json ./
# The second command fetches the addon of SQLite, whose install script did not run.
RUN npm ci --omit=dev --ignore-scripts && npx tollgate --version
COPY . .
RUN install -d -o node -g node -m 0700 /var/lib/tollgate
USER node
ENV NODE_ENV=production HOST=0.0.0.0 DATA_DIR=/var/lib/tollgate
EXPOSE 4021
HEALTHCHECK --interval=10s --timeout=3s --start-period=60s \\
  CMD ["node", "-e", "fetch('http://127.0.0.1:' + (process.env.PORT || 4021) + '/livez').then(({ ok }) => process.exit(ok ? 0 : 1), () => process.exit(1))"]
CMD ["npx", "tollgate", "start"]
`,
  'test/catalog.test.ts': `import assert from 'node:assert/strict'
import { it } from 'node:test'
import { openTestCatalog } from 'tollgate/testing'

it('has no error in any file of the catalog', async () => {
  const catalog = await openTestCatalog()
  await catalog.close()
  assert.deepEqual(catalog.issues, [])
})
`,
  'tsconfig.json': `${JSON.stringify(TSCONFIG, null, 2)}\n`,
}
