import { delimiter } from 'node:path'
import { expect } from 'chai'
import { Client } from 'pg'
import { ConfigError, readConfig, readStorageConfig } from '../../../gateway/config/config.ts'

const issues = (environment: Record<string, string>): readonly string[] => {
  try {
    readConfig(environment)
    return []
  } catch (error) {
    if (error instanceof ConfigError) return error.issues
    throw error
  }
}
const KEY = `0x${'1'.repeat(64)}`
const PAYEE = `0x${'a'.repeat(40)}`
const production = {
  NETWORK: 'base',
  PAY_TO: PAYEE,
  SETTLE_RPC_URL: 'http://127.0.0.1:8545',
  SETTLE_KEY: KEY,
  DATA_MODE: 'online',
  BASE_URL: 'https://shop.example',
}

describe('the configuration', () => {
  it('needs no variables for the sandbox', () => {
    const config = readConfig({})
    expect(config).to.include({ network: 'sandbox', dataMode: 'sample', port: 4021, baseUrl: 'http://127.0.0.1:4021' })
    expect(config.dataDir).to.match(/data[\\/]sandbox-sample$/)
    expect(Object.isFrozen(config)).to.equal(true)
  })

  it('needs nothing that money moves with for a command that reads or copies what is stored', () => {
    const environment = { NETWORK: 'base', DATA_MODE: 'sample', DATABASE_URL: 'postgres://127.0.0.1/shop' }
    const config = readStorageConfig(environment)
    expect(config).to.include({ network: 'base', databaseUrl: environment.DATABASE_URL })
    expect(config.dataDir).to.match(/data[\\/]base-sample$/)
    expect(issues(environment).join()).to.contain('PAY_TO is missing')
    for (const [wrong, message] of [
      [{ NETWORK: 'basalt' }, /^NETWORK: basalt is not a known network/],
      [{ DATABASE_URL: 'shop' }, /^DATABASE_URL has the wrong form/],
      [{ PAY_TO: '0x1' }, /^PAY_TO /],
    ] as const)
      expect(() => readStorageConfig({ ...environment, ...wrong }))
        .to.throw(ConfigError)
        .that.has.property('issues')
        .that.satisfies((found: readonly string[]) => found.length === 1 && message.test(found[0] ?? ''))
  })

  it('ignores white space around values, such as the line break at the end of a secret that was read from a file', () => {
    const spaced = Object.fromEntries(Object.entries(production).map(([name, value]) => [name, ` ${value}\n`]))
    const config = readConfig({
      ...spaced,
      OPERATOR_TOKEN: 'correct-horse-battery\n',
      DISK_LOW_MB: ' ',
      NODE_TOKEN: 'abc\n',
    })
    const { networks, secret: _secret, environment: _environment, ...plain } = readConfig(production)
    expect(config).to.deep.include({ ...plain, networks, operatorToken: 'correct-horse-battery' })
    expect(config.secret('NODE_TOKEN')).to.equal('abc')
  })

  it('refuses a BASE_URL with a path, credentials or a line break, which every document would repeat', () => {
    for (const address of ['/shop', '/', '\\shop', '?a', '#a', '\nshop', ' shop'])
      expect(issues({ BASE_URL: `https://shop.example${address}` }), address).to.have.length(1)
    expect(issues({ BASE_URL: 'https://me:s3cret@shop.example' }).join())
      .to.match(/BASE_URL/)
      .and.not.contain('s3cret')
  })

  it('treats an empty variable as absent', () => {
    expect(readConfig({ PORT: '', PAY_TO: '' }).port).to.equal(4021)
  })

  it('reports every invalid value at once, each with the description of its variable', () => {
    const found = issues({ PORT: 'eighty', PAY_TO: '0x12', DATA_MODE: 'guess' })
    expect(found).to.have.length(3)
    expect(found.join('\n'))
      .to.match(/PORT.*listen/)
      .and.match(/PAY_TO.*receives/)
      .and.match(/DATA_MODE.*feeds/)
  })

  it('reports what is missing or contradictory beside values that are invalid, and nothing twice', () => {
    const found = issues({
      NETWORK: 'base',
      PORT: 'eighty',
      SETTLE_KEY: '0x12',
      REPLAY_SHIFT: 'soon',
      BASE_URL: 'shop',
    })
    const names = found.map((line) => line.split(/[: ]/)[0])
    expect(names).to.have.members([
      'PORT',
      'SETTLE_KEY',
      'REPLAY_SHIFT',
      'BASE_URL',
      'PAY_TO',
      'SETTLE_RPC_URL',
      'DATA_MODE',
    ])
    for (const line of found) expect(line.match(/as buyers see it/g)?.length ?? 0, line).to.be.lessThan(2)
    expect(issues({ ...production, FACILITATOR_URL: 'facilitator.example' })).to.have.length(1)
    for (const auth of ['s3cret', 'bearer:one bearer:two', 'jwt:cdp:id:s3cret']) {
      const given = { ...production, FACILITATOR_URL: 'https://facilitator.example', FACILITATOR_AUTH: auth }
      expect(issues(given).join(), auth)
        .to.match(/^FACILITATOR_AUTH is not understood.*bearer:TOKEN/)
        .and.not.contain('s3cret')
    }
    expect(
      issues({ NETWORK: 'Base', BASE_URL: 'https://shop.example' }).filter((line) => line.startsWith('NETWORK')),
    ).to.have.length(1)
  })

  it('reports an invalid time at which to freeze the data', () => {
    expect(issues({ REPLAY_SHIFT: 'frozen:soon' })).to.deep.equal(['REPLAY_SHIFT: soon is not an ISO 8601 time.'])
    expect(readConfig({ REPLAY_SHIFT: '-3600' }).replayShift.seconds).to.equal(-3600)
  })

  it('reports addresses that cannot be called, without the secret of a webhook', () => {
    const found = issues({
      BASE_URL: 'https://shop.example:99999',
      ALERT_WEBHOOK_URL: 'https://hooks.example:99999/s3cret',
    })
    expect(found).to.have.length(2)
    expect(found.join('\n'))
      .to.match(/BASE_URL is https/)
      .and.match(/ALERT_WEBHOOK_URL is not an address/)
    expect(found.join('\n')).not.to.contain('s3cret')
  })

  it('asks for a secret if payments are to be told, and takes two of them, but no other text', () => {
    const url = { PAYMENT_WEBHOOK_URL: 'https://hooks.example/payments' }
    expect(issues(url).join('\n')).to.match(/^WEBHOOK_SECRET is missing, and PAYMENT_WEBHOOK_URL needs it\. /)
    const [one, two] = [1, 2].map((byte) => `whsec_${Buffer.alloc(32, byte).toString('base64')}`) as [string, string]
    expect(readConfig({ ...url, WEBHOOK_SECRET: ` ${one}\n${two} ` }).webhookSecrets).to.deep.equal([one, two])
    for (const wrong of ['s3cret', 'whsec_s3cret', `${one},${two}`]) {
      const found = issues({ ...url, WEBHOOK_SECRET: wrong })
      expect(found).to.have.length(1)
      expect(found[0])
        .to.match(/^WEBHOOK_SECRET/)
        .and.not.to.contain(wrong)
    }
  })

  it('reports databases that cannot be called, such as one whose password has a #, without their credentials', () => {
    const found = issues({ DATABASE_URL: 'postgresql://shop:s3cret#1@db.example/shop', KEYV_URL: 'redis://:s3cret@' })
    expect(found.map((line) => line.slice(0, 30))).to.deep.equal([
      'DATABASE_URL is not an address',
      'KEYV_URL is not an address. Re',
    ])
    expect(found.join()).to.contain('%23').and.not.contain('s3cret')
    expect(issues({ DATABASE_URL: 'postgresql:///shop?host=/run/postgresql' })).to.deep.equal([])
  })

  it('takes the password of the database from PGPASSWORD, as the programs of PostgreSQL do, unless the address has one', () => {
    const urlOf = (DATABASE_URL: string): string | null =>
      readConfig({ DATABASE_URL, PGPASSWORD: 's3cret/#% 1' }).databaseUrl
    const passwordOf = (url: string | null): string | undefined => new Client({ connectionString: url ?? '' }).password
    expect(passwordOf(urlOf('postgresql://shop@db.example/shop?sslmode=disable'))).to.equal('s3cret/#% 1')
    expect(passwordOf(urlOf('postgresql://db.example/shop'))).to.equal('s3cret/#% 1')
    expect(passwordOf(urlOf('postgresql:///shop?host=/run/postgresql'))).to.equal('s3cret/#% 1')
    for (const url of ['postgresql://shop:own@db.example/shop', 'postgresql:///shop?host=/run/postgresql&password=own'])
      expect(urlOf(url)).to.equal(url)
    expect(urlOf('postgresql:///shop?options=-c%20a=b')).to.contain('?options=-c%20a=b&password=s3cret%2F')
    expect(readConfig({ PGPASSWORD: 'x' }).databaseUrl).to.equal(null)
  })

  it('searches no folder for an empty entry of PLUGIN_DIRS', () => {
    const dirs = (PLUGIN_DIRS: string): readonly string[] => readConfig({ PLUGIN_DIRS }).pluginDirs
    expect(dirs(`${delimiter}/srv/plugins${delimiter} ${delimiter}`)).to.deep.equal(['/srv/plugins'])
    expect(dirs(delimiter)).to.deep.equal(readConfig({}).pluginDirs)
  })

  it('reports nodes and facilitators that cannot be called, without their credentials', () => {
    const production = { NETWORK: 'base', PAY_TO: `0x${'b2'.repeat(20)}`, BASE_URL: 'https://shop.example' }
    const found = issues({
      ...production,
      DATA_MODE: 'online',
      RPC_URL: 'https://node.example https://reader:s3cret@node.example:99999',
      FACILITATOR_URL: 'https://shop:s3cret@',
    })
    expect(found).to.have.length(2)
    expect(found.join('\n'))
      .to.match(/RPC_URL names something that is not an address/)
      .and.match(/FACILITATOR_URL names something that is not an address/)
    expect(found.join('\n')).not.to.contain('s3cret')
    const wrongKind = issues({ ...production, DATA_MODE: 'online', RPC_URL: 'ftp://reader:s3cret@node.example' })
    expect(wrongKind.join('\n')).to.contain('RPC_URL').and.not.to.contain('s3cret')
  })

  it('lists everything that production needs and does not have', () => {
    const found = issues({ NETWORK: 'base', BASE_URL: 'http://shop.example' }).join('\n')
    expect(found)
      .to.match(/PAY_TO is missing/)
      .and.match(/Payments cannot be settled/)
      .and.match(/https/)
      .and.match(/ALLOW_SAMPLE_SALES/)
  })

  it('configures each of several networks from the shared variables and from those with its name', () => {
    const { networks, ...config } = readConfig({
      ...production,
      NETWORK: 'base base-sepolia polygon',
      PAY_TO_BASE_SEPOLIA: `0x${'b'.repeat(40)}`,
      SETTLE_RPC_URL_BASE_SEPOLIA: 'http://127.0.0.1:8546',
      FACILITATOR_URL_POLYGON: 'https://one.example https://two.example',
      FACILITATOR_AUTH_POLYGON: '- bearer:abc',
      RPC_URL_POLYGON: 'http://127.0.0.1:8547',
    })
    expect(config).to.include({ network: 'base', payTo: PAYEE, settleRpcUrl: 'http://127.0.0.1:8545' })
    expect(config.dataDir).to.match(/base-online$/)
    expect(networks).to.have.length(3)
    expect(networks[1]).to.include({
      network: 'base-sepolia',
      payTo: `0x${'b'.repeat(40)}`,
      settleRpcUrl: 'http://127.0.0.1:8546',
      settleKey: KEY,
      rpcUrl: 'http://127.0.0.1:8546',
    })
    expect(networks[2]).to.deep.include({
      network: 'polygon',
      payTo: PAYEE,
      facilitatorUrls: ['https://one.example', 'https://two.example'],
      facilitatorAuth: ['-', 'bearer:abc'],
      settleRpcUrl: null,
      settleKey: null,
      rpcUrl: 'http://127.0.0.1:8547',
    })
  })

  it('names the variable that another network lacks, and unknown networks', () => {
    const found = issues({ ...production, NETWORK: 'base base-sepolia moon', PAY_TO_BASE_SEPOLIA: '0x1' })
    expect(found.join()).to.match(/PAY_TO_BASE_SEPOLIA.*receives/)
    const rest = issues({ ...production, NETWORK: 'base base-sepolia moon' }).join('\n')
    expect(rest)
      .to.match(/SETTLE_RPC_URL_BASE_SEPOLIA/)
      .and.match(/moon is not a known network.*networks\.json/)
    expect(issues({ NETWORK: 'sandbox base' }).join()).to.include('cannot be combined')
    expect(issues({ ...production, NETWORK: 'base-sepolia', DATA_MODE: 'sample' })).to.deep.equal([])
    expect(issues({ ...production, NETWORK: 'polygon', DATA_MODE: 'sample' }).join()).to.include('real money')
  })

  it('refuses an address to be paid at that was mistyped, because what is paid there is lost', () => {
    // An example of EIP-55.
    const right = '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed'
    const wrong = right.replace('0x5aAe', '0x5aAf')
    for (const payTo of [right, right.toLowerCase(), `0x${right.slice(2).toUpperCase()}`, wrong.toLowerCase()])
      expect(issues({ ...production, PAY_TO: payTo }), payTo).to.deep.equal([])
    const network = {
      NETWORK: 'base polygon',
      FACILITATOR_URL_POLYGON: 'https://one.example',
      RPC_URL_POLYGON: 'https://two.example',
    }
    expect(issues({ ...production, PAY_TO: wrong })).to.deep.equal([
      `PAY_TO: ${wrong} is mistyped, as its capital letters show (EIP-55). Copy the address again.`,
    ])
    expect(issues({ ...production, ...network, PAY_TO_POLYGON: wrong }).join()).to.match(/^PAY_TO_POLYGON: 0x5aAf/)
    const test = { ...production, NETWORK: 'base-sepolia', DATA_MODE: 'sample' }
    expect(issues({ ...test, PAY_TO: wrong }), 'a network of test money').to.deep.equal([])
  })

  it('accepts a complete production configuration', () => {
    expect(readConfig(production)).to.include({
      network: 'base',
      baseUrl: 'https://shop.example',
      rpcUrl: 'http://127.0.0.1:8545',
    })
  })

  it('counts PAY_TO among the own wallets of the operator, because paying oneself is not revenue', () => {
    const [payTo, own] = [`0x${'A1'.repeat(20)}`, `0x${'B2'.repeat(20)}`]
    const config = readConfig({ ...production, PAY_TO: payTo, OWN_WALLETS: `${own} ${payTo.toLowerCase()}` })
    expect(config.ownWallets).to.deep.equal([own.toLowerCase(), payTo.toLowerCase()])
    expect(readConfig({}).ownWallets).to.deep.equal([])
  })

  it('reads lists of nodes and wallet factories, and the limits of settlement', () => {
    const [first, second] = [`0x${'c'.repeat(40)}`, `0x${'d'.repeat(40)}`]
    const config = readConfig({
      ...production,
      RPC_URL: 'https://one.example/v2/key, https://two.example',
      CONFIRM_BLOCKS: '6',
      SETTLE_MAX_GWEI: '0.05',
      SETTLE_BATCH: '10',
      WALLET_FACTORIES: `${first},${second}`,
    })
    expect(config).to.include({ rpcUrl: 'https://one.example/v2/key, https://two.example', confirmBlocks: 6 })
    expect(config).to.include({ maxGasPrice: 50_000_000n, settleBatch: 10 })
    expect(config.walletFactories).to.deep.equal([first, second])
    expect(readConfig(production)).to.include({ maxGasPrice: null, settleBatch: null })
  })

  it('takes five blocks for final where money is real, and one where it is not', () => {
    expect(readConfig(production).confirmBlocks).to.equal(5)
    expect(readConfig({ ...production, NETWORK: 'base-sepolia', DATA_MODE: 'sample' }).confirmBlocks).to.equal(1)
    expect(readConfig({}).confirmBlocks).to.equal(1)
    expect(readConfig({ ...production, CONFIRM_BLOCKS: '2' })).to.include({
      confirmBlocks: 2,
      allowShallowPlans: false,
    })
  })

  it('reads from which price on two nodes must agree: one dollar by default', () => {
    expect(readConfig(production).twoNodesFrom).to.equal(1_000_000n)
    expect(readConfig({ ...production, TWO_NODES_FROM_USD: '0.05' }).twoNodesFrom).to.equal(50_000n)
    expect(issues({ ...production, TWO_NODES_FROM_USD: '-1' }).join()).to.include('TWO_NODES_FROM_USD')
  })

  it('accepts proxies as addresses and ranges, and nothing else', () => {
    const { trustedProxies } = readConfig({ TRUSTED_PROXIES: ' 203.0.113.7  2001:db8::/32 ' })
    expect(trustedProxies).to.deep.equal(['203.0.113.7', '2001:db8::/32'])
    expect(readConfig({}).trustedProxies).to.deep.equal([])
    const found = issues({ TRUSTED_PROXIES: '203.0.113.0/33 1.2.3 10.0.0.0/8 fe80::1/0' })
    expect(found.map((line) => line.split(' ')[1])).to.deep.equal(['203.0.113.0/33', '1.2.3', 'fe80::1/0'])
  })

  it('refuses invalid limits and lists, and names each variable', () => {
    const wrong = {
      RPC_URL: 'https://one.example, two.example',
      CONFIRM_BLOCKS: '0',
      SETTLE_MAX_GWEI: '-1',
      SETTLE_BATCH: 'many',
      WALLET_FACTORIES: '0x12',
    }
    const found = issues({ ...production, ...wrong })
    expect(found.map((line) => line.split(' ')[0])).to.have.members(Object.keys(wrong))
  })

  it('refuses a settler that lacks its key or its node', () => {
    const { SETTLE_KEY: _, ...half } = production
    expect(issues(half).join()).to.match(/SETTLE_KEY is missing/)
  })

  it('sells made-up data for real money only if ALLOW_SAMPLE_SALES is set', () => {
    expect(issues({ ...production, DATA_MODE: 'sample' }).join()).to.match(/ALLOW_SAMPLE_SALES=true/)
    expect(issues({ ...production, DATA_MODE: 'sample', ALLOW_SAMPLE_SALES: 'true' })).to.deep.equal([])
  })

  it('refuses SETTLEMENT=strict where a facilitator settles, because nobody can tell whose its transactions are', () => {
    const { SETTLE_RPC_URL: _rpc, SETTLE_KEY: _key, ...rest } = production
    const facilitator = { ...rest, FACILITATOR_URL: 'https://facilitator.example', RPC_URL: 'http://127.0.0.1:1' }
    expect(issues({ ...facilitator, SETTLEMENT: 'strict' }).join()).to.match(/SETTLEMENT is strict, and base/)
    expect(issues({ ...facilitator, SETTLEMENT: 'any' })).to.deep.equal([])
    expect(issues({ ...facilitator, SETTLEMENT: 'mine' }).join()).to.match(/SETTLEMENT must be/)
  })

  it('requires a node to read the chain if a facilitator settles', () => {
    const { SETTLE_RPC_URL: _url, SETTLE_KEY: _key, ...rest } = production
    expect(issues({ ...rest, FACILITATOR_URL: 'https://facilitator.example' }).join()).to.match(/RPC_URL is missing/)
  })

  it('uses one data folder for each network and data mode', () => {
    const folders = ['sample', 'online'].map((DATA_MODE) => readConfig({ DATA_MODE }).dataDir)
    expect(new Set(folders).size).to.equal(2)
  })

  it('accepts http in BASE_URL only on loopback', () => {
    expect(issues({ BASE_URL: 'http://localhost:4021' })).to.deep.equal([])
    expect(issues({ BASE_URL: 'http://localhost.example' }).join()).to.match(/https/)
  })
})
