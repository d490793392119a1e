/**
 * Clients that people use, and what they do with a body that a gateway does not wait for: each uploads and returns the
 * status that it has read.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { rmSync, writeFileSync, mkdtempSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import axios from 'axios'

/** Uploads a body, and resolves to the status of the answer. Rejects if the client has not read one. */
export type Upload = (url: string, body: Buffer) => Promise<number>

const TYPE = 'application/json'
const PYTHON = {
  httpClient: `
import http.client, sys, urllib.parse
url = urllib.parse.urlsplit(sys.argv[1])
connection = http.client.HTTPConnection(url.hostname, url.port)
connection.request('POST', url.path, open(sys.argv[2], 'rb').read(), {'Content-Type': '${TYPE}'})
answer = connection.getresponse()
answer.read()
print(answer.status)`,
  urllib: `
import sys, urllib.error, urllib.request
request = urllib.request.Request(sys.argv[1], open(sys.argv[2], 'rb').read(), {'Content-Type': '${TYPE}'})
try:
    print(urllib.request.urlopen(request).status)
except urllib.error.HTTPError as error:
    error.read()
    print(error.code)`,
}
const CURL = ['-s', '-S', '-o', '/dev/null', '-w', '%{http_code}', '-H', `Content-Type: ${TYPE}`]

export const UPLOADS: Readonly<Record<string, Upload>> = {
  fetch: async (url, body) => {
    const response = await fetch(url, { method: 'POST', headers: { 'content-type': TYPE }, body: new Uint8Array(body) })
    await response.arrayBuffer()
    return response.status
  },
  axios: async (url, body) => {
    const headers = { 'content-type': TYPE }
    const { status } = await axios.post(url, body, { headers, maxBodyLength: Infinity, validateStatus: null })
    return status
  },
  curl: withFile((url, file) => ['curl', ...CURL, '--data-binary', `@${file}`, url]),
  'curl that does not wait for 100': withFile((url, file) => [
    'curl',
    ...CURL,
    '-H',
    'Expect:',
    '--data-binary',
    `@${file}`,
    url,
  ]),
  'curl in chunks': withFile((url, file) => [
    'curl',
    ...CURL,
    '-H',
    'Transfer-Encoding: chunked',
    '-H',
    'Expect:',
    '--data-binary',
    `@${file}`,
    url,
  ]),
  'http.client of Python': withFile((url, file) => ['python3', '-c', PYTHON.httpClient, url, file]),
  'urllib of Python': withFile((url, file) => ['python3', '-c', PYTHON.urllib, url, file]),
  'a client that reads only after it has written': readLast,
}

/** An upload by a program, which gets the body as a file and prints the status. */
function withFile(commandOf: (url: string, file: string) => readonly string[]): Upload {
  return async (url, body) => {
    const folder = mkdtempSync(join(tmpdir(), 'upload-'))
    const file = join(folder, 'body')
    try {
      writeFileSync(file, body)
      const [program = '', ...args] = commandOf(url, file)
      const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'] })
      let [printed, failure] = ['', '']
      child.stdout.on('data', (text: Buffer) => (printed += text.toString()))
      child.stderr.on('data', (text: Buffer) => (failure += text.toString()))
      const [code] = (await once(child, 'close')) as [number | null]
      if (code !== 0) throw new Error(`${program} ended with ${code}: ${failure.trim().split('\n').at(-1) ?? ''}`)
      return Number(printed)
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
  }
}

async function readLast(url: string, body: Buffer): Promise<number> {
  const { hostname, port, pathname, host } = new URL(url)
  const socket = connect(Number(port), hostname)
  try {
    await once(socket, 'connect')
    socket.pause()
    socket.write(
      `POST ${pathname} HTTP/1.1\r\nHost: ${host}\r\nContent-Type: ${TYPE}\r\nContent-Length: ${body.length}\r\n\r\n`,
    )
    if (!socket.write(body)) await once(socket, 'drain')
    let received = ''
    for await (const text of socket.setEncoding('latin1') as AsyncIterable<string>) received += text
    return Number(/^HTTP\/1\.1 (\d{3}) [^]*\r\n\r\n/.exec(received)?.[1] ?? 0)
  } finally {
    socket.destroy()
  }
}
