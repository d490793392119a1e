import { expect } from 'chai'
import { ConfigError, readConfig } from '../../gateway/config.ts'

const mistakes = (environment: Record<string, string>): readonly string[] => {
  try {
    readConfig(environment)
    return []
  } catch (error) {
    if (error instanceof ConfigError) return error.mistakes
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
  it('needs nothing for the sandbox', () => {
    const config = readConfig({})
    expect(config).to.include({ network: 'sandbox', dataMode: 'sample', port: 4021, baseUrl: 'http://127.0.0.1:4021' })
    expect(config.dataDir).to.match(/data[\\/]sandbox-sample$/)
    expect(Object.isFrozen(config)).to.equal(true)
  })

  it('takes an empty variable as an absent one', () => {
    expect(readConfig({ PORT: '', PAY_TO: '' }).port).to.equal(4021)
  })

  it('reports every wrong value at once, each with what the variable is for', () => {
    const found = mistakes({ PORT: 'eighty', PAY_TO: '0x12', DATA_MODE: 'guess' })
    expect(found).to.have.length(3)
    expect(found.join('\n'))
      .to.match(/PORT.*listen/)
      .and.match(/PAY_TO.*receives/)
      .and.match(/DATA_MODE.*feeds/)
  })

  it('lists everything production lacks', () => {
    const found = mistakes({ NETWORK: 'base', BASE_URL: 'http://shop.example' }).join('\n')
    expect(found)
      .to.match(/PAY_TO is missing/)
      .and.match(/No settler/)
      .and.match(/https/)
      .and.match(/ALLOW_SAMPLE_SALES/)
  })

  it('accepts a complete production set', () => {
    expect(readConfig(production)).to.include({
      network: 'base',
      baseUrl: 'https://shop.example',
      rpcUrl: 'http://127.0.0.1:8545',
    })
  })

  it('refuses half a settler', () => {
    const { SETTLE_KEY: _, ...half } = production
    expect(mistakes(half).join()).to.match(/SETTLE_KEY is missing/)
  })

  it('sells made-up data for real money only where that is allowed', () => {
    expect(mistakes({ ...production, DATA_MODE: 'sample' }).join()).to.match(/ALLOW_SAMPLE_SALES=true/)
    expect(mistakes({ ...production, DATA_MODE: 'sample', ALLOW_SAMPLE_SALES: 'true' })).to.deep.equal([])
  })

  it('wants a chain to read beside a facilitator', () => {
    const { SETTLE_RPC_URL: _url, SETTLE_KEY: _key, ...rest } = production
    expect(mistakes({ ...rest, FACILITATOR_URL: 'https://facilitator.example' }).join()).to.match(/RPC_URL is missing/)
  })

  it('keeps one folder for each network and data mode', () => {
    const folders = ['sample', 'online'].map((DATA_MODE) => readConfig({ DATA_MODE }).dataDir)
    expect(new Set(folders).size).to.equal(2)
  })

  it('accepts http only on loopback', () => {
    expect(mistakes({ BASE_URL: 'http://localhost:4021' })).to.deep.equal([])
    expect(mistakes({ BASE_URL: 'http://localhost.example' }).join()).to.match(/https/)
  })
})
