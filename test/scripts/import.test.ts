/** Imports OpenAPI documents with the shapes of well-known APIs, and buys from them through an upstream that records its calls. */
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { expect } from 'chai'
import type { Operation } from '../../gateway/plugin/catalog.ts'
import { openGateway, type TestGateway } from '../support/gateway.ts'
import { signPayment } from '../support/wallet.ts'

const root = resolve(import.meta.dirname, '../..')
const fixtures = join(root, 'test/fixtures/openapi')

type Json = Record<string, unknown>

interface Shop {
  readonly folder: string
  readonly environment: Record<string, string>
  /** Runs a command of `tollgate`. */
  run(...args: readonly string[]): { readonly status: number | null; readonly stdout: string; readonly stderr: string }
  read(file: string): Json
  write(file: string, content: unknown): void
  close(): void
}

function openShop(): Shop {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-import-'))
  const path = (file: string): string => join(folder, 'catalog', file)
  const environment = {
    CATALOG_DIR: join(folder, 'catalog'),
    SCHEMA_DIR: join(folder, 'schemas'),
    PLUGIN_DIRS: join(folder, 'plugins'),
    DATA_DIR: join(folder, 'data'),
  }
  mkdirSync(join(folder, 'catalog'))
  mkdirSync(join(folder, 'plugins'))
  return {
    folder,
    environment,
    run: (...args) =>
      spawnSync(process.execPath, [join(root, 'scripts/tollgate.mjs'), ...args], {
        cwd: folder,
        encoding: 'utf8',
        env: { PATH: process.env['PATH'], ...environment },
      }),
    read: (file) => JSON.parse(readFileSync(path(file), 'utf8')) as Json,
    write: (file, content) => writeFileSync(path(file), JSON.stringify(content)),
    close: () => rmSync(folder, { recursive: true, force: true }),
  }
}

const SOURCES: readonly string[] = readdirSync(fixtures).sort()

/** Flags that a document needs: its title makes no name, or it does not say where its API is. */
const FLAGS: Readonly<Record<string, readonly string[]>> = {
  'news.yaml': ['--product', 'news'],
  'warehouse.yaml': ['--server', 'https://warehouse.example/odata'],
}

/** What a line of the report says, for each document that is not sold whole. */
const TOLD: Readonly<Record<string, readonly string[]>> = {
  'calendar.yaml': ['UPSTREAM_CALENDAR_KEY: the key, which is sent as key in the query'],
  'chat.yaml': ['POST /chat.postMessage: userAuth is OAuth 2 in the name of a person, who would have to agree'],
  'health-records.yaml': ['POST /$import: its callback done, because a sold call ends with its answer'],
  'models.yaml': [
    'GET /events: it answers with a stream of text/event-stream, and "stream" of an upstream counts for a whole product',
  ],
  'music.yaml': [
    'GET /artists/{name}/top-tracks: it has the same addresses as GET /artists/{id}/top-tracks',
    'GET /me: person is OpenID Connect, which signs a person in',
    'UPSTREAM_MUSIC_OAUTH_2_0: "Bearer " and a token that lasts: Tollgate does not renew it',
  ],
  'packages.yaml': [
    'GET /{scoped_package}: it has the same addresses as GET /{package}',
    'GET /{package}/{version}: values of {package} with a slash, which no path of a route holds',
    'DELETE /{package}/{version}: DELETE with a body, which many proxies and clients drop',
  ],
  'payments.yaml': [
    'GET /v1/charges: query parameter metadata, which is an object of any fields, and a query has those that are described',
  ],
  'petstore.yaml': [
    'GET /user/login: petstore_auth is OAuth 2 in the name of a person, who would have to agree',
    'PUT /pet: a body of application/xml: it is sold as application/json',
    'GET /pet/findByTags: deprecated by its maker. Delete it from the document if you do not want to sell it.',
  ],
  'repositories.yaml': [
    'HEAD /user/starred/{owner}/{repo}: HEAD has no answer to sell, and a route that is sold with GET answers it',
    'GET /repos/{owner}/{repo}/tarball/{ref}: it answers with a redirect, which is not followed',
    'webhook star: the API sends it to its own customers, and no buyer asks for it',
  ],
  'storage.yaml': ['GET /{Bucket}/{Key}#metadata: signature is HTTP digest, which Tollgate does not speak'],
  'transit.yaml': ['TRACE /operators/{operator.id}/trips: TRACE would show what the gateway sends'],
  'weather.yaml': [
    'servers: calls go to https://weather.example/data/2.5, the first of 2. Choose another with --server.',
  ],
}

interface Expected {
  readonly file: string
  readonly id: string
  /** Method, host and target, as the OpenAPI document says it for the example. */
  readonly line: string
  readonly headers?: Readonly<Record<string, string>>
  /** A JSON value, a text, or the parts of a form. */
  readonly body?: unknown
  /** Bytes that the upstream answers. By default the example of the answer, or 204 if that is null. */
  readonly answer?: Buffer
}

const BYTES = Buffer.from([0x89, 0x50, 0x00, 0xff, 0xfe, 0x0a])
const ACCOUNT = `AC${'a'.repeat(32)}`
const JSON_TYPE = { 'content-type': 'application/json' }

const EXPECTED: readonly Expected[] = [
  {
    file: 'calendar.yaml',
    id: 'calendarEventsPatch',
    line: 'PATCH calendar.example/calendar/v3/calendars/ada%40example.com/events/e1?prettyPrint=false&key=s-UPSTREAM_CALENDAR_KEY',
    headers: { 'content-type': 'application/merge-patch+json' },
    body: { summary: 'Lunch', end: null },
  },
  {
    file: 'calendar.yaml',
    id: 'post2quickAdd',
    line: 'POST calendar.example/calendar/v3/calendars/ada%40example.com/events:quickAdd?text=Lunch+at+12&key=s-UPSTREAM_CALENDAR_KEY',
  },
  {
    file: 'chat.yaml',
    id: 'conversationsHistory',
    line: 'GET chat.example/api/conversations.history?channel=C123&oldest=1.5&inclusive=true',
    headers: { authorization: 's-UPSTREAM_CHAT_BOT_TOKEN', 'x-workspace': 's-UPSTREAM_CHAT_WORKSPACE' },
  },
  {
    file: 'commerce.yaml',
    id: 'listProducts',
    line: 'GET commerce.example/admin/api/products?page%5Bsize%5D=10&filter%5Bstatus%5D=active&filter%5Bprice%5D%5Bmin%5D=1.5',
    headers: { cookie: 's-UPSTREAM_COMMERCE_SESSION', accept: 'application/vnd.api+json' },
  },
  {
    file: 'commerce.yaml',
    id: 'createProduct',
    line: 'POST commerce.example/admin/api/products',
    headers: { 'content-type': 'application/vnd.api+json', accept: 'application/vnd.api+json' },
    body: { data: { type: 'products', attributes: { title: 'text' } } },
  },
  {
    file: 'health-records.yaml',
    id: 'searchPatient',
    line: 'POST records.example/fhir/Patient/_search',
    headers: { authorization: 's-UPSTREAM_HEALTH_RECORDS_TOKEN', 'content-type': 'application/x-www-form-urlencoded' },
    body: 'name=Ada',
  },
  {
    file: 'health-records.yaml',
    id: 'patientEverything',
    line: 'GET records.example/fhir/Patient/0b5ad5c4-3a5e-4f8e-9a4f-6d0a4c1d2e3f/$everything',
    headers: { accept: 'application/fhir+json' },
  },
  {
    file: 'health-records.yaml',
    id: 'import',
    line: 'POST records.example/fhir/$import',
    headers: { 'content-type': 'application/fhir+json' },
    body: { resourceType: 'text' },
    answer: Buffer.alloc(0),
  },
  {
    file: 'maps.yaml',
    id: 'getDirectionsJson',
    line: 'GET maps.example/maps/api/directions/json?origin=24+Sussex+Drive&waypoints=via%3ALyon%7CN%C3%AEmes&avoid=tolls%20ferries&key=s-UPSTREAM_MAPS_API_KEY_AUTH',
  },
  {
    file: 'maps.yaml',
    id: 'getGeocodeLatLngOutput',
    line: 'GET maps.example/maps/api/geocode/48.85,2.35/json?key=s-UPSTREAM_MAPS_API_KEY_AUTH',
  },
  {
    file: 'maps.yaml',
    id: 'getStaticmap',
    line: 'GET maps.example/maps/api/staticmap?size=100x100&key=s-UPSTREAM_MAPS_API_KEY_AUTH',
    headers: { accept: 'image/png' },
    answer: BYTES,
  },
  {
    file: 'messaging.yaml',
    id: 'createMessage',
    line: `POST messaging.example/2010-04-01/Accounts/${ACCOUNT}/Messages.json`,
    headers: { authorization: 's-UPSTREAM_MESSAGING_ACCOUNT_SID_AUTH_TOKEN' },
    body: 'To=%2B15555550100&Body=Hi+%26+bye',
  },
  {
    file: 'messaging.yaml',
    id: 'listMessage',
    line: `GET messaging.example/2010-04-01/Accounts/${ACCOUNT}/Messages.json?DateSent%3C=2026-01-01T00%3A00%3A00Z`,
  },
  {
    file: 'messaging.yaml',
    id: 'fetchMessage',
    line: 'GET messaging.example/2010-04-01/Accounts/text/Messages/text.json',
  },
  {
    file: 'models.yaml',
    id: 'createChatCompletion',
    line: 'POST models.example/v1/chat/completions',
    headers: { ...JSON_TYPE, authorization: 's-UPSTREAM_LANGUAGE_MODELS_API_KEY_AUTH', accept: 'application/json' },
    body: { model: 'small', messages: [{ role: 'user', content: 'text' }] },
  },
  {
    file: 'models.yaml',
    id: 'createSpeech',
    line: 'POST models.example/v1/audio/speech',
    headers: { accept: 'application/octet-stream' },
    body: { input: 'text', voice: 'alloy' },
    answer: BYTES,
  },
  {
    file: 'models.yaml',
    id: 'createTranscription',
    line: 'POST models.example/v1/audio/transcriptions',
    body: { file: 'text', model: 'text', temperature: '0' },
  },
  {
    file: 'music.yaml',
    id: 'getAnArtistsTopTracks',
    line: 'GET music.example/v1/artists/0TnOYISbd1XYRBk9myaseg/top-tracks?market=FR&fields=name,album.name',
    headers: { authorization: 's-UPSTREAM_MUSIC_OAUTH_2_0' },
  },
  {
    file: 'news.yaml',
    id: 'getTopHeadlines',
    line: 'GET news.example/v2/top-headlines?q=a%2Bb+%26+c&sources%5B%5D=bbc&sources%5B%5D=ard',
    headers: { 'x-api-key': 's-UPSTREAM_NEWS_HEADER', cookie: 'consent=yes', 'accept-language': 'de' },
  },
  {
    file: 'packages.yaml',
    id: 'getPackageVersion',
    line: 'GET packages.example/text/latest',
  },
  {
    file: 'packages.yaml',
    id: 'putPackageVersion',
    line: 'PUT packages.example/text/latest',
    headers: JSON_TYPE,
    body: { package: 'text', dist: { shasum: 'a'.repeat(40) } },
  },
  {
    file: 'payments.yaml',
    id: 'getCharges',
    line: 'GET payments.example/v1/charges?created%5Bgt%5D=100&expand%5B0%5D=customer&expand%5B1%5D=invoice',
    headers: { authorization: 's-UPSTREAM_PAYMENTS_BASIC_AUTH' },
  },
  {
    file: 'payments.yaml',
    id: 'postCharges',
    line: 'POST payments.example/v1/charges',
    headers: { 'idempotency-key': 'key-1' },
    body: 'amount=2000&currency=abc&expand=customer&expand=invoice&shipping%5Bname%5D=Ada+L.&shipping%5Baddress%5D%5Bcity%5D=Paris',
  },
  {
    file: 'payments.yaml',
    id: 'postFiles',
    line: 'POST files.payments.example/v1/files',
    body: { file: 'text', purpose: 'dispute_evidence', file_link_data: '{"create":true}' },
  },
  {
    file: 'petstore.yaml',
    id: 'updatePet',
    line: 'PUT petstore.example/api/v3/pet',
    headers: { ...JSON_TYPE, api_key: 's-UPSTREAM_PET_STORE_API_KEY' },
    body: { name: 'doggie', photoUrls: ['text'] },
  },
  {
    file: 'petstore.yaml',
    id: 'findPetsByStatus',
    line: 'GET petstore.example/api/v3/pet/findByStatus?status=available&limit=20',
  },
  {
    file: 'petstore.yaml',
    id: 'findPetsByTags',
    line: 'GET petstore.example/api/v3/pet/findByTags?tags=quiet&tags=small',
  },
  {
    file: 'petstore.yaml',
    id: 'getPetById',
    line: 'GET petstore.example/api/v3/pet/9007199254740993',
    headers: { api_key: 's-UPSTREAM_PET_STORE_API_KEY' },
  },
  {
    file: 'petstore.yaml',
    id: 'deletePet',
    line: 'DELETE petstore.example/api/v3/pet/9007199254740993',
    headers: { 'x-reason': 'sold twice', api_key: 's-UPSTREAM_PET_STORE_API_KEY' },
  },
  {
    file: 'petstore.yaml',
    id: 'uploadFile',
    line: 'POST petstore.example/api/v3/pet/1/uploadImage',
    headers: { 'content-type': 'application/octet-stream' },
    body: 'text',
  },
  {
    file: 'rates.yaml',
    id: 'latest',
    line: 'GET rates.example/latest/;base=EUR/.USD.GBP',
  },
  {
    file: 'rates.yaml',
    id: 'getConvertPairs',
    line: 'GET rates.example/convert/EURUSD,EURGBP',
  },
  {
    file: 'repositories.yaml',
    id: 'issuesListForRepo',
    line: 'GET code.example/repos/ada/engine/issues?labels=bug%2Cui&since=2026-01-01T00%3A00%3A00Z',
    headers: { 'x-code-api-version': '2026-11-28', accept: 'application/vnd.code+json' },
  },
  {
    file: 'repositories.yaml',
    id: 'activityStarRepo',
    line: 'PUT code.example/user/starred/ada/engine',
  },
  {
    file: 'space.json',
    id: 'getApod',
    line: 'GET space.example/planetary/apod?date=2026-02-01&api_key=s-UPSTREAM_SPACE_PICTURES_API_KEY',
  },
  {
    file: 'storage.yaml',
    id: 'listObjectsV2',
    line: 'GET storage.example/photos?list-type=2',
    headers: { 'x-storage-tags': 'one,two', authorization: 's-UPSTREAM_OBJECT_STORAGE_HMAC', accept: 'text/xml' },
    answer: Buffer.from('<ListBucketResult/>'),
  },
  {
    file: 'storage.yaml',
    id: 'putObject',
    line: 'PUT storage.example/photos/b%20c.txt',
    headers: { 'content-type': 'text/xml' },
    body: '<a/>',
    answer: Buffer.alloc(0),
  },
  {
    file: 'tickets.yaml',
    id: 'issue',
    line: 'GET tickets.example/rest/api/3/issue/TEN-1?properties=%7B%22a%22%3A1%7D',
    headers: { authorization: 's-UPSTREAM_TICKETS_BASIC_AUTH' },
  },
  {
    file: 'tickets.yaml',
    id: 'putRestApi3IssueIssueIdOrKey',
    line: 'PUT tickets.example/rest/api/3/issue/TEN-1',
    headers: JSON_TYPE,
    body: { key: 'TEN-1', fields: { summary: 'Shorter' } },
  },
  {
    file: 'transit.yaml',
    id: 'getOperatorsOperatorIdTrips',
    line: 'GET north.transit.example/v2/operators/BA/trips',
    headers: { cookie: 'session=a%20b', accept: 'application/x-protobuf' },
    answer: BYTES,
  },
  {
    file: 'warehouse.yaml',
    id: 'productsProductListProduct',
    line: 'GET warehouse.example/odata/Products?%24top=5&%24select=ID,Name&%24filter=Name%20eq%20%27a%27',
  },
  {
    file: 'warehouse.yaml',
    id: 'productsProductGetProduct',
    line: 'GET warehouse.example/odata/Products(7)',
  },
  {
    file: 'weather.yaml',
    id: 'currentWeatherData',
    line: 'GET weather.example/data/2.5/weather?q=London%2Cuk&units=metric&appid=s-UPSTREAM_WEATHER_APP_ID',
  },
]

interface Received {
  readonly line: string
  readonly headers: IncomingHttpHeaders
  readonly body: Buffer
}

interface Sent {
  readonly method: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | FormData
}

/** The request of an operation's example, as a buyer sends it. */
function exampleRequest(operation: Operation): { readonly target: string; readonly init: Sent } {
  const { params = {}, query = {}, body } = operation.example?.request ?? {}
  const path = operation.path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(String(params[name])))
  const search = new URLSearchParams()
  for (const [name, value] of Object.entries(query))
    for (const item of [value].flat()) search.append(name, String(item))
  const target = search.size > 0 ? `${path}?${search.toString()}` : path
  const { method } = operation
  const [media] = operation.bodyMedia
  if (media === undefined) return { target, init: { method } }
  if (media === 'application/json')
    return { target, init: { method, headers: { 'content-type': media }, body: JSON.stringify(body) } }
  const fields = body as Json
  const isForm = media === 'multipart/form-data' || media === 'application/x-www-form-urlencoded'
  if (!isForm) return { target, init: { method, headers: { 'content-type': media }, body: String(fields['file']) } }
  const form = media === 'multipart/form-data' ? new FormData() : new URLSearchParams()
  for (const [name, value] of Object.entries(fields))
    for (const item of [value].flat())
      if (name === 'file' && form instanceof FormData) form.append(name, new Blob([String(item)]), 'a.txt')
      else form.append(name, String(item))
  // A charset, which fetch would add, is no part of this media type.
  if (form instanceof URLSearchParams)
    return { target, init: { method, headers: { 'content-type': media }, body: form.toString() } }
  return { target, init: { method, body: form } }
}

/** What a body says: a JSON value, the parts of a form, or its text. */
async function bodyOf({ headers, body }: Received): Promise<unknown> {
  const type = headers['content-type'] ?? ''
  if (/json/.test(type)) return JSON.parse(body.toString())
  if (!type.startsWith('multipart/')) return body.length === 0 ? undefined : body.toString()
  const form = await new Response(new Uint8Array(body), { headers: { 'content-type': type } }).formData()
  const parts = [...form].map(
    async ([name, part]) => [name, typeof part === 'string' ? part : await part.text()] as const,
  )
  return Object.fromEntries(await Promise.all(parts))
}

describe('tollgate import', function () {
  this.timeout(180_000)

  describe('with documents of the shapes of well-known APIs', () => {
    const shop = openShop()
    const reports = new Map<string, string>()
    let upstream: Server
    let received: Received | null = null
    let answer: { readonly status: number; readonly type: string; readonly bytes: Buffer }
    let gateway: TestGateway
    let operations: ReadonlyMap<string, Operation>

    before(async () => {
      upstream = createServer((request, response) => {
        const chunks: Buffer[] = []
        request.on('data', (chunk: Buffer) => chunks.push(chunk))
        request.on('end', () => {
          const { method, url = '', headers } = request
          received = { line: `${method} ${url.slice(1)}`, headers, body: Buffer.concat(chunks) }
          response.writeHead(answer.status, answer.status === 204 ? {} : { 'content-type': answer.type })
          response.end(answer.status === 204 ? undefined : answer.bytes)
        })
      })
      await new Promise<void>((done) => upstream.listen(0, '127.0.0.1', done))
      const secrets: Record<string, string> = {}
      for (const source of SOURCES) {
        const { stdout, stderr } = shop.run(
          'import',
          join(fixtures, source),
          '--price',
          '0.01',
          ...(FLAGS[source] ?? []),
        )
        expect(stderr, source).to.equal('')
        reports.set(source, stdout)
      }
      // The host becomes a folder of the upstream of this test, so that it is seen which one is called.
      const address = `http://127.0.0.1:${(upstream.address() as AddressInfo).port}`
      for (const file of readdirSync(join(shop.folder, 'catalog/x'))) {
        const path = join(shop.folder, 'catalog/x', file)
        const text = readFileSync(path, 'utf8')
        for (const [, name] of text.matchAll(/"env:(\w+)"/g)) secrets[name as string] = `s-${name}`
        writeFileSync(path, text.replaceAll(/"https:\/\/([\w.]+\.example)/g, `"${address}/$1`))
      }
      Object.assign(shop.environment, secrets)
      gateway = await openGateway({ ...shop.environment })
      operations = gateway.gateway.current.catalog.operations
    })
    after(async () => {
      await gateway?.close()
      upstream?.close()
      shop.close()
    })

    it('writes one document for each', () => {
      expect(SOURCES).to.have.length(20)
      expect(readdirSync(join(shop.folder, 'catalog'))).to.deep.equal(['x'])
      expect(readdirSync(join(shop.folder, 'catalog/x'))).to.have.length(20)
    })

    it('writes a catalog that has no error', () => {
      const { stdout, status } = shop.run('check')
      expect(stdout).to.match(/No errors\.\n$/)
      expect(status).to.equal(0)
    })

    it('names secrets, and writes none', () => {
      const headers = SOURCES.map((source) => reports.get(source)).join('\n')
      expect(headers).to.contain('UPSTREAM_PAYMENTS_BASIC_AUTH: "Basic " and base64 of "user:password"')
      expect(headers).to.contain('UPSTREAM_COMMERCE_SESSION: "sid=" and the key')
      // A document whose title is "Settle" must not get SETTLE_KEY sent to its server.
      const documents = readdirSync(join(shop.folder, 'catalog/x')).map((file) =>
        JSON.stringify(shop.read(`x/${file}`)),
      )
      const named = [...documents.join().matchAll(/"env:(\w+)"/g)].map(([, name]) => name as string)
      expect(named).to.have.length.above(15)
      expect(named.filter((name) => !name.startsWith('UPSTREAM_'))).to.deep.equal([])
    })

    for (const [source, lines] of Object.entries(TOLD))
      it(`says what it leaves out of ${source}`, () => {
        for (const line of lines) expect(reports.get(source)).to.contain(`   ${line}\n`)
      })

    it('says nothing of documents that are carried over whole', () => {
      for (const source of SOURCES.filter((each) => !(each in TOLD)))
        expect(reports.get(source), source).not.to.match(/Left out|Not carried over/)
    })

    it('sells every operation that it does not leave out', () => {
      const sold = [...operations.values()].filter(({ family }) => family === 'x').map(({ id }) => id)
      const others = ['getPackage', 'getStatus']
      expect(sold.sort()).to.deep.equal([...EXPECTED.map(({ id }) => id), ...others].sort())
    })

    it('describes what is sold in /openapi.json, where every reference leads somewhere', async () => {
      const document = (await (await fetch(`${gateway.url}/openapi.json`)).json()) as Json
      expect(document['paths']).to.have.property('/v1/x/tickets/rest/api/3/issue/{issueIdOrKey}')
      const refs = new Set(
        [...JSON.stringify(document).matchAll(/"\$ref":"#([^"]+)"/g)].map(([, ref]) => ref as string),
      )
      const broken = [...refs].filter((ref) => {
        const steps = ref
          .slice(1)
          .split('/')
          .map((step) => decodeURIComponent(step).replace(/~1/g, '/').replace(/~0/g, '~'))
        return steps.reduce<unknown>((node, step) => (node as Json | undefined)?.[step], document) === undefined
      })
      expect(refs.size).to.be.above(5)
      expect(broken).to.deep.equal([])
    })

    it('offers tools whose names and arguments every MCP client accepts', async () => {
      const answer = await fetch(`${gateway.url}/mcp`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
        body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list' }),
      })
      const data = (await answer.text()).replace(/^(event:.*\n)?data: /, '')
      const { tools } = (
        JSON.parse(data) as { result: { tools: { name: string; inputSchema: { properties?: Json } }[] } }
      ).result
      const names = tools.flatMap(({ name, inputSchema }) => [name, ...Object.keys(inputSchema.properties ?? {})])
      expect(names).to.include.members(['list_products', 'filter_price_min', 'get_geocode_lat_lng_output', 'lng'])
      expect(names.filter((name) => !/^[a-zA-Z0-9_.-]{1,64}$/.test(name))).to.deep.equal([])
    })

    for (const expected of EXPECTED)
      it(`sells ${expected.id} of ${expected.file}, which is called as the document says`, async () => {
        const operation = operations.get(expected.id) as Operation
        const example = operation.example?.response
        answer = expected.answer
          ? { status: 200, type: 'application/x-answer', bytes: expected.answer }
          : {
              status: example === null ? 204 : 200,
              type: 'application/json',
              bytes: Buffer.from(JSON.stringify(example) ?? ''),
            }
        const { target, init } = exampleRequest(operation)
        const unpaid = await fetch(gateway.url + target, init)
        expect(unpaid.status).to.equal(402)
        const offer = JSON.parse(Buffer.from(unpaid.headers.get('payment-required') ?? '', 'base64').toString()) as {
          accepts: [never]
        }
        const payment = await signPayment({ account: gateway.wallet, requirement: offer.accepts[0], version: 2 })
        received = null
        const again = exampleRequest(operation).init
        const paid = await fetch(gateway.url + target, {
          ...again,
          headers: { ...again.headers, 'payment-signature': payment },
        })
        const bytes = Buffer.from(await paid.arrayBuffer())
        expect(paid.status, bytes.toString()).to.equal(200)
        const { line, headers } = received as unknown as Received
        expect(line).to.equal(expected.line)
        expect(headers).to.include(expected.headers ?? {})
        expect(headers).not.to.have.any.keys('payment-signature', 'x-payment')
        expect(await bodyOf(received as unknown as Received)).to.deep.equal(expected.body)
        if (expected.answer) expect(bytes.equals(expected.answer)).to.equal(true)
        else expect(JSON.parse(bytes.toString())).to.deep.equal(example)
      })
  })

  /** A small OpenAPI document, with changes. */
  const small = (changes: Json = {}): Json => ({
    openapi: '3.0.3',
    info: { title: 'Tides', version: '1' },
    servers: [{ url: 'https://tides.example' }],
    paths: {
      '/days/{day}': {
        get: {
          summary: 'The tides of a day.',
          parameters: [{ name: 'day', in: 'path', required: true, schema: { type: 'string' } }],
          responses: { 200: { description: 'ok', content: { 'application/json': { schema: { type: 'object' } } } } },
        },
      },
      '/stations': {
        get: {
          summary: 'The stations.',
          responses: { 200: { description: 'ok', content: { 'application/json': {} } } },
        },
      },
    },
    ...changes,
  })

  describe('with input that cannot be imported', () => {
    const shop = openShop()
    const source = join(shop.folder, 'openapi.json')
    after(() => shop.close())
    beforeEach(() => writeFileSync(source, JSON.stringify(small())))

    const refused = (...args: readonly string[]): string => {
      const { status, stderr, stdout } = shop.run('import', ...args)
      expect(stdout).to.equal('')
      expect(status).to.equal(1)
      expect(readdirSync(join(shop.folder, 'catalog'))).to.deep.equal([])
      expect(stderr).not.to.match(/\n +at /)
      return stderr
    }
    const cases: readonly (readonly [title: string, content: unknown, args: readonly string[], says: string])[] = [
      ['that is Swagger 2.0', { swagger: '2.0' }, [], 'is Swagger "2.0". Convert it to OpenAPI 3 first'],
      ['that is OpenAPI 4', small({ openapi: '4.0.0' }), [], 'is OpenAPI 4.0.0. Tollgate imports 3.0 and 3.1'],
      ['that is not OpenAPI', { title: 'Tides' }, [], 'is not an OpenAPI document: it has no field "openapi".'],
      ['without paths', small({ paths: undefined }), [], 'has no "info" or no "paths"'],
      ['that is no YAML', 'a: [1', [], 'cannot be read:'],
      [
        'with a broken reference',
        small({ paths: { '/x': { get: { responses: { 200: { $ref: '#/components/responses/X' } } } } } }),
        [],
        'refers to something that is not there:',
      ],
      [
        'with a price that is none',
        small(),
        ['--price', '1e3'],
        '--price 1e3 is not a price. Write "free", or dollars',
      ],
      ['with a path that is none', small(), ['--at', 'tides'], '--at tides is not a path.'],
      ['with a name that is none', small(), ['--product', 'Tides!'], 'such as tides.'],
      ['with a server that is none', small(), ['--server', 'tides'], '--server tides is not an address.'],
      ['without a server', small({ servers: undefined }), [], 'Say where the API is with --server https://…'],
      [
        'that takes a route of the gateway',
        small({ paths: { '/mcp': { get: { responses: { 200: { description: 'ok' } } } } } }),
        ['--at', '/'],
        '/mcp belongs to the gateway. Write another path.\nSay with --at where its routes begin',
      ],
      [
        'that takes the route of a built-in document',
        small({ paths: { '/health': { get: { responses: { 200: { description: 'ok' } } } } } }),
        ['--at', '/'],
        'Say with --at where its routes begin',
      ],
      [
        'of which nothing can be sold',
        small({ paths: { '/x': { head: { responses: { 200: { description: 'ok' } } } } } }),
        [],
        'HEAD /x: HEAD has no answer to sell',
      ],
    ]
    for (const [title, content, args, says] of cases)
      it(`refuses a document ${title}, and says what to do`, () => {
        writeFileSync(source, typeof content === 'string' ? content : JSON.stringify(content))
        const price = args.includes('--price') ? [] : ['--price', '0.01']
        expect(refused(source, ...price, ...args)).to.contain(says)
      })

    it('asks for a price, for a document, and for one that exists', () => {
      expect(refused(source)).to.match(/^Say what a call costs: --price 0.01, or --price free.\n/)
      expect(refused()).to.match(/^Name an OpenAPI document.\n/)
      expect(refused('nowhere.yaml', '--price', '0.01')).to.match(/^nowhere\.yaml cannot be read: .*\nName a file/)
      const closed = refused('http://127.0.0.1:1/openapi.json', '--price', '0.01')
      expect(closed).to.match(/^http:.* cannot be read: .*\nCheck the address/)
    })

    it('leaves a product alone that no import wrote', () => {
      const other = openShop()
      const file = join(other.folder, 'openapi.json')
      writeFileSync(file, JSON.stringify(small()))
      mkdirSync(join(other.folder, 'catalog/x'))
      const own = { product: 'tides', title: 'Tides', summary: 'Mine.', upstream: { url: 'http://a/' }, operations: {} }
      other.write('x/tides.json', own)
      const { stderr, status } = other.run('import', file, '--price', '0.01')
      expect(status).to.equal(1)
      expect(stderr).to.contain('sells a product tides that no import wrote. Choose another name with --product.')
      expect(other.read('x/tides.json')).to.deep.equal(own)
      other.close()
    })
  })

  describe('again', () => {
    const shop = openShop()
    const source = join(shop.folder, 'openapi.json')
    const write = (changes: Json): void => writeFileSync(source, JSON.stringify(small(changes)))
    type Operations = Record<string, Json>
    const operations = (): Operations => shop.read('x/tides.json')['operations'] as Operations
    after(() => shop.close())

    it('writes nothing new if nothing has changed', () => {
      write({})
      expect(shop.run('import', source, '--price', '0.01').status).to.equal(0)
      const before = readFileSync(join(shop.folder, 'catalog/x/tides.json'), 'utf8')
      const { stdout } = shop.run('import', source)
      expect(stdout).to.match(/^catalog\/x\/tides\.json: 2 operations\. Nothing has changed\.\n\nNext: /)
      expect(readFileSync(join(shop.folder, 'catalog/x/tides.json'), 'utf8')).to.equal(before)
    })

    it('keeps prices, words and all else that the operator has changed, and prints what is different', () => {
      const document = shop.read('x/tides.json')
      const { getDaysDay, getStations } = operations()
      const own = { ...getDaysDay, price: '0.25', summary: 'High and low water of one day.', wait: 'confirmed' }
      const upstream = { ...(document['upstream'] as Json), timeout_seconds: 3 }
      const hand = { ...getStations, route: 'GET /v1/x/tides/by-hand' }
      shop.write('x/tides.json', {
        ...document,
        title: 'Tides of the North Sea',
        upstream,
        operations: { getDaysDay: own, getStations, getByHand: hand },
      })
      const { paths } = small() as { paths: Record<string, { get: Json }> }
      const day = paths['/days/{day}']?.get as Json
      const limit = { name: 'limit', in: 'query', schema: { type: 'integer' } }
      write({
        info: { title: 'Tides', version: '2', description: 'Water levels.' },
        paths: {
          '/days/{day}': { get: { ...day, summary: 'Tides.', parameters: [...(day['parameters'] as Json[]), limit] } },
          '/moons': { get: { responses: { 200: { description: 'ok', content: { 'application/json': {} } } } } },
        },
      })
      const { stdout, stderr } = shop.run('import', source, '--price', '0.02')
      expect(stderr).to.equal('')
      expect(stdout).to.contain('3 operations. 1 added, 1 removed, 2 changed.')
      expect(stdout).to.contain('\n + GET /moons as getMoons\n')
      expect(stdout).to.contain('\n - GET /stations as getStations\n')
      expect(stdout).to.contain('\n ~ the product: summary\n')
      expect(stdout).to.contain('\n ~ GET /days/{day} as getDaysDay: query; yours stays: summary, price\n')
      const after = shop.read('x/tides.json')
      expect(after).to.include({ title: 'Tides of the North Sea', summary: 'Water levels.' })
      expect(after['upstream']).to.deep.equal({ url: 'https://tides.example', timeout_seconds: 3 })
      expect(Object.keys(operations())).to.deep.equal(['getDaysDay', 'getMoons', 'getByHand'])
      expect(operations()['getDaysDay']).to.include({ price: '0.25', summary: own.summary, wait: 'confirmed' })
      expect(operations()['getDaysDay']).to.have.nested.property('query.properties.limit')
      expect(operations()['getMoons']).to.include({ price: '0.02' })
      expect(operations()['getByHand']).to.deep.equal(hand)
    })

    it('says where calls go, if the document names another server', () => {
      const { paths } = JSON.parse(readFileSync(source, 'utf8')) as Json
      write({ servers: [{ url: 'https://other.example' }], paths })
      const { stdout } = shop.run('import', source)
      expect(stdout).to.match(/ ~ the product: .*url, calls go to https:\/\/other\.example now\n/)
      write({ paths })
      expect(shop.run('import', source).status).to.equal(0)
    })

    it('leaves out what the operator has taken out', () => {
      const { getMoons: _, ...rest } = operations()
      shop.write('x/tides.json', { ...shop.read('x/tides.json'), operations: rest })
      const { stdout } = shop.run('import', source)
      expect(stdout).to.contain('Taken out by you, and left out:\n   GET /moons\n')
      expect(operations()).not.to.have.property('getMoons')
      expect(shop.run('import', source).stdout).to.contain('   GET /moons\n')
    })
  })

  describe('from elsewhere', () => {
    it('reads an address, whose servers may be relative to it, and the files that a document refers to', async () => {
      const shop = openShop()
      const schema = { type: 'object', required: ['metres'], properties: { metres: { type: 'number' } } }
      const content = { 'application/json': { schema: { $ref: 'schemas/level.json' } } }
      const document = small({
        servers: [{ url: '../api' }],
        paths: { '/level': { get: { responses: { 200: { description: 'ok', content } } } } },
      })
      const files: Record<string, unknown> = { '/docs/openapi': document, '/docs/schemas/level.json': schema }
      const server = createServer(({ url = '' }, response) => {
        response.writeHead(url in files ? 200 : 404).end(JSON.stringify(files[url]))
      })
      await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
      const address = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
      // The server answers in this process, so that the command must not block it.
      const { execFile } = await import('node:child_process')
      const tollgate = join(root, 'scripts/tollgate.mjs')
      const args = [tollgate, 'import', `${address}/docs/openapi`, '--price', 'free']
      const env = { PATH: process.env['PATH'], ...shop.environment }
      const failed = await new Promise<string>((done) =>
        execFile(process.execPath, args, { cwd: shop.folder, env }, (_, __, stderr) => done(stderr)),
      )
      server.close()
      expect(failed).to.equal('')
      const { upstream, operations, imported } = shop.read('x/tides.json')
      expect(upstream).to.deep.equal({ url: `${address}/api` })
      expect(imported).to.include({ from: `${address}/docs/openapi`, price: 'free' })
      expect(operations)
        .to.have.nested.property('getLevel.response')
        .that.deep.includes({ required: ['metres'] })
      shop.close()
    })
  })
})
