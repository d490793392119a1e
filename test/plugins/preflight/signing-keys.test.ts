import { expect } from 'chai'
import type { OpenDatabase } from '../../../gateway/stores/database.ts'
import { verifyMessage } from 'viem'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { migrate } from '../../../gateway/stores/migrations.ts'
import { DATABASES, type TestDatabase } from '../../contracts/databases.ts'
import type { Attester } from '../../../gateway/plugin/plugin.ts'
import { openLocalKeys } from '../../../gateway/tokens/statement-signer.ts'
import { type Keys, migrations, openKeys } from '../../../plugins/preflight/signing-keys.ts'

const DAY = 86_400

/** What the gateway gives to the product, with a new token key, or with a key that the operator has chosen. */
async function newAttester(chosen: `0x${string}` | null = null): Promise<Attester> {
  const { attestations } = await openLocalKeys(null, null, (name) =>
    name === 'ATTESTATION_KEY_PREFLIGHT' ? chosen : null,
  )
  return {
    key: async (serial) => attestations.key('preflight', serial),
    sign: async (serial, text) => attestations.sign('preflight', serial, text),
  }
}

for (const [name, create] of Object.entries(DATABASES))
  describe(`the signing keys of preflights in ${name}`, () => {
    let database: TestDatabase | null
    let db: OpenDatabase
    let clock: number
    let attest: Attester
    const open = (configuredKey: `0x${string}` | null = null): Promise<Keys> =>
      openKeys({ db, attest, configuredKey, rotateDays: 90, now: () => clock })

    beforeEach(async function () {
      database = await create()
      if (!database) return this.skip()
      clock = 1_795_000_000
      db = database.db
      await migrate(db, 'preflight', migrations)
      attest = await newAttester()
    })
    afterEach(() => database?.drop())

    it('are generated on first start and kept after a restart', async () => {
      const [first] = await (await open()).published()
      expect(first?.validUntil).to.equal(null)
      expect(first?.publicKey).to.match(/^0x04[0-9a-f]{128}$/)
      clock += DAY
      expect(await (await open()).published()).to.deep.equal([first])
    })

    it('are the same for several processes that start together', async () => {
      const all = await Promise.all(Array.from({ length: 5 }, () => open()))
      const signers = await Promise.all(all.map(async (keys) => (await keys.sign('x')).signer))
      expect(new Set(signers).size).to.equal(1)
      expect(await all[0]!.published()).to.have.length(1)
    })

    it('make signatures that anyone can verify', async () => {
      const keys = await open()
      const { signer, value } = await keys.sign('{"a":"€"}')
      expect((await keys.published())[0]?.address).to.equal(signer)
      expect(await verifyMessage({ address: signer, message: '{"a":"€"}', signature: value })).to.equal(true)
      expect(await verifyMessage({ address: signer, message: '{"a":"$"}', signature: value })).to.equal(false)
    })

    it('are replaced after ninety days, and stay published with their period', async () => {
      const keys = await open()
      const [old] = await keys.published()
      clock += 90 * DAY - 1
      await keys.rotate()
      expect(await keys.published()).to.have.length(1)
      clock += 1
      await keys.rotate()
      const [current, previous] = await keys.published()
      expect(previous).to.deep.equal({ ...old, validUntil: clock })
      expect(current).to.include({ validFrom: clock, validUntil: null })
      expect((await keys.sign('x')).signer)
        .to.equal(current?.address)
        .and.not.equal(old?.address)
      await keys.rotate()
      expect(await keys.published()).to.have.length(2)
    })

    it('give way to a key from the settings, which is never stored or rotated', async () => {
      await open()
      clock += DAY
      const configured = generatePrivateKey()
      const keys = await open(configured)
      const { address } = privateKeyToAccount(configured)
      expect((await keys.sign('x')).signer).to.equal(address)
      const [current, previous] = await keys.published()
      expect(current).to.include({ address, validFrom: clock })
      expect(previous).to.include({ validUntil: clock })
      expect(JSON.stringify(await db('preflight_keys'))).to.not.contain(configured.slice(2))
      clock += 1000 * DAY
      await (await open(configured)).rotate()
      expect(await keys.published()).to.have.length(2)
    })

    it('are not in the database, also those of a version that kept them there, which stay published', async () => {
      const privateKey = generatePrivateKey()
      const { address, publicKey: public_key } = privateKeyToAccount(privateKey)
      const row = { serial: 1, address, public_key, private_key: privateKey, valid_from: clock, valid_until: null }
      await db('preflight_keys').insert(row)
      clock += DAY
      const keys = await open()
      const { signer } = await keys.sign('x')
      expect((await keys.published()).map(({ address: each }) => each)).to.deep.equal([signer, address])
      expect((await keys.published())[1]).to.include({ validUntil: clock })
      const rows: { private_key: string | null }[] = await db('preflight_keys')
      expect(rows.map((each) => each.private_key)).to.deep.equal([null, null])
    })

    it('may be one that the operator gives to the signer, which is never rotated', async () => {
      await open()
      clock += DAY
      const chosen = generatePrivateKey()
      attest = await newAttester(chosen)
      const keys = await open()
      const { address, publicKey } = privateKeyToAccount(chosen)
      expect((await keys.sign('{"a":1}')).value).to.equal(
        await privateKeyToAccount(chosen).signMessage({ message: '{"a":1}' }),
      )
      clock += 1000 * DAY
      await keys.rotate()
      expect((await keys.published())[0]).to.include({ address, publicKey, validUntil: null })
      expect(await keys.published()).to.have.length(2)
    })

    it('are generated again when the settings no longer have a key', async () => {
      const configured = generatePrivateKey()
      await open(configured)
      clock += DAY
      const keys = await open()
      const { signer } = await keys.sign('x')
      expect((await keys.published()).map(({ address }) => address)).to.deep.equal([
        signer,
        privateKeyToAccount(configured).address,
      ])
    })
  })
