import { expect } from 'chai'
import request from 'supertest'
import { InvalidInput, Unavailable } from '../../gateway/errors.ts'
import { Reply } from '../../gateway/plugin/plugin.ts'
import { openTransportGateway, PRICED, type TransportGateway, route } from './transport-gateway.ts'

const LONG_STYLE = 'body { color: black }\n'.repeat(200)

const CONSTANT = Reply.constant({ title: 'always' })
const BROWSER = 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8'
const VIEWS = {
  'report.pug': 'h1= title\np.path= path\np.service= service.name',
  'error.pug': 'h1= status\np.code= code\np.id= call_id\nif detail\n  p.msg= detail[0].msg',
  'payment.pug': 'h1 Pay\np.price= operation.priceText\np.network= network.name\np.url= requirements.resource.url',
  'broken.pug': 'p= nothing.here',
  'drawn.pug': 'p= Math.random()',
  'assets/style.css': 'body {}',
  'assets/long.css': LONG_STYLE,
}

describe('a page', () => {
  let gateway: TransportGateway
  const textOf = async (path: string): Promise<string> => (await request(gateway.server).get(path).expect(200)).text
  before(async () => {
    const form = { success: '/report/{rid}', failure: '/?err={code}' }
    const media = { body: {}, bodyMedia: ['application/x-www-form-urlencoded'] }
    gateway = await openTransportGateway(
      [
        route('showReport', 'GET /report/{rid}', { view: 'report', response: null }, ({ raw }) => ({
          title: raw.params['rid'],
        })),
        route('showEither', 'GET /either', { view: 'report' }, () => ({ title: 'both' })),
        route('showWritten', 'GET /written', { view: 'report' }, () => Reply.json(Buffer.from('{ "title": "ready" }'))),
        route('showConstant', 'GET /constant', { view: 'drawn', response: null }, () => CONSTANT),
        route('showLive', 'GET /live', { view: 'drawn', response: null }, () => ({})),
        route('showBroken', 'GET /broken', { view: 'broken', response: null }),
        route('showInvalid', 'GET /invalid', { view: 'report', response: null }, () => {
          throw new InvalidInput('must be <small>', ['query', 'ok'])
        }),
        route('getCurrent', 'GET /v1/current', PRICED),
        route('send', 'POST /send', { form, ...media }, () => ({ rid: 'a b/1', other: 2 })),
        route('sendWritten', 'POST /send-written', { form, ...media }, () => Reply.json(Buffer.from('{"rid":"b2"}'))),
        route('refuse', 'POST /refuse', { form, ...media }, () => {
          throw new Unavailable()
        }),
      ],
      { views: VIEWS },
    )
  })
  after(() => gateway.close())

  it('of a constant answer is rendered once, any other for each call', async () => {
    const [first, second] = [await textOf('/constant'), await textOf('/constant')]
    expect(second).to.equal(first)
    expect(await textOf('/constant?again=1')).to.equal(first)
    expect(await textOf('/live')).to.not.equal(await textOf('/live'))
  })

  it('is rendered from its view and the value of its handler, with the content security policy of pages', async () => {
    const { headers, text } = await request(gateway.server).get('/report/x%3Cb%3E').expect(200)
    expect(text).to.equal('<h1>x&lt;b&gt;</h1><p class="path">/report/x%3Cb%3E</p><p class="service">shop</p>')
    expect(headers['content-type']).to.equal('text/html; charset=utf-8')
    expect(headers['content-security-policy']).to.match(
      /^default-src 'none'; .*script-src 'self'; .*form-action 'self'; base-uri 'none'; frame-ancestors 'none'$/,
    )
  })

  it('is sent to browsers if the operation also answers JSON, and JSON is sent to other callers', async () => {
    const page = await request(gateway.server).get('/either').set('Accept', BROWSER).expect(200)
    expect(page.text).to.contain('<h1>both</h1>')
    expect(page.headers['vary']).to.equal('Accept')
    for (const accept of [
      '*/*',
      'application/json',
      'application/json, text/html;q=0.5',
      'text/plain',
      'text/html;q=0',
    ])
      expect((await request(gateway.server).get('/either').set('Accept', accept)).body, accept).to.deep.equal({
        title: 'both',
      })
  })

  it('shows the value of JSON that the handler has written, and redirects with it', async () => {
    const page = await request(gateway.server).get('/written').set('Accept', BROWSER).expect(200)
    expect(page.text).to.contain('<h1>ready</h1>')
    const data = await request(gateway.server).get('/written').set('Accept', 'application/json').expect(200)
    expect(data.text).to.equal('{ "title": "ready" }')
    const sent = request(gateway.server).post('/send-written').type('form').set('Accept', BROWSER).send({ a: 1 })
    await sent.expect(303).expect('Location', '/report/b2')
  })

  it('shows an error to a browser, escaped and with its status', async () => {
    const { text } = await request(gateway.server).get('/invalid').set('Accept', BROWSER).expect(422)
    expect(text).to.contain('<p class="msg">must be &lt;small&gt;</p>')
    const missing = await request(gateway.server).get('/nowhere').set('Accept', 'text/html').expect(404)
    expect(missing.text).to.contain(`<p class="id">${missing.headers['x-call-id']}</p>`)
    await request(gateway.server).post('/report/x').set('Accept', BROWSER).expect(405)
  })

  it('has the same payment header for a browser as for other callers', async () => {
    const page = await request(gateway.server).get('/v1/current').set('Accept', BROWSER).expect(402)
    const data = await request(gateway.server).get('/v1/current').expect(402)
    expect(page.text).to.equal(
      '<h1>Pay</h1><p class="price">0.005</p><p class="network">base-sepolia</p><p class="url">http://shop.example/v1/current</p>',
    )
    expect(page.headers['payment-required']).to.equal(data.headers['payment-required'])
    expect(page.headers['cache-control']).to.equal('no-store')
  })

  it('is 500 if it cannot be rendered', async () => {
    const { body } = await request(gateway.server).get('/broken').expect(500)
    expect(body).to.include({ code: 'internal' })
    const { text } = await request(gateway.server).get('/broken').set('Accept', BROWSER).expect(500)
    expect(text).to.contain('<p class="code">internal</p>')
  })

  it('redirects a browser after a form, and answers other callers with JSON', async () => {
    const sent = await request(gateway.server).post('/send').type('form').set('Accept', BROWSER).send('a=1').expect(303)
    expect(sent.headers['location']).to.equal('/report/a%20b%2F1')
    const refused = await request(gateway.server)
      .post('/refuse')
      .type('form')
      .set('Accept', BROWSER)
      .send('a=1')
      .expect(303)
    expect(refused.headers['location']).to.equal('/?err=product_suspended')
    expect((await request(gateway.server).post('/send').type('form').send('a=1').expect(200)).body).to.include({
      other: 2,
    })
    await request(gateway.server).post('/refuse').type('form').send('a=1').expect(503).expect('retry-after', '60')
  })

  it('loads assets from one folder, which cannot be listed', async () => {
    const asset = await request(gateway.server).get('/assets/style.css').expect(200)
    expect(asset.text).to.equal('body {}')
    expect(asset.headers).to.include({ 'x-content-type-options': 'nosniff', 'cache-control': 'public, max-age=3600' })
    for (const path of ['/assets', '/assets/', '/assets/none.css', '/assets/.hidden'])
      await request(gateway.server).get(path).expect(404)
    await request(gateway.server).post('/assets/style.css').expect(405)
  })

  it('loads whole assets, whatever range or precondition is asked for', async () => {
    const asked = [
      { range: 'bytes=999999-' },
      { range: 'bytes=0-9', 'accept-encoding': 'gzip' },
      { 'if-match': '"other"' },
      { 'if-unmodified-since': 'Thu, 01 Jan 1970 00:00:00 GMT' },
    ]
    for (const headers of asked) {
      const { status, text } = await request(gateway.server).get('/assets/long.css').set(headers)
      expect([status, text], JSON.stringify(headers)).to.deep.equal([200, LONG_STYLE])
    }
    const { headers } = await request(gateway.server).get('/assets/long.css').expect(200)
    expect(headers).to.not.have.property('accept-ranges')
    await request(gateway.server)
      .get('/assets/long.css')
      .set('if-none-match', headers['etag'] as string)
      .expect(304)
  })

  it('loads long assets compressed if the browser accepts gzip', async () => {
    const long = (accepts: string) => request(gateway.server).get('/assets/long.css').set('accept-encoding', accepts)
    const [packed, plain] = [await long('gzip').expect(200), await long('identity').expect(200)]
    expect([packed.headers['content-encoding'], plain.headers['content-encoding']]).to.deep.equal(['gzip', undefined])
    for (const { text, headers } of [packed, plain])
      expect([text, headers['vary']]).to.deep.equal([LONG_STYLE, 'Accept-Encoding'])
  })
})
