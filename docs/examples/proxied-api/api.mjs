/** An API that wants a key, in place of your own. */
import { createServer } from 'node:http'

const LEVELS = { hull: 3.5, leith: 2.1 }

createServer((request, response) => {
  const metres = LEVELS[request.url.slice('/levels/'.length)]
  const status = request.headers['x-api-key'] !== 'let-me-in' ? 401 : metres === undefined ? 404 : 200
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify({ metres }))
}).listen(8080, '127.0.0.1', () => console.log('The API is open.'))
