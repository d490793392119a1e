/** What stands in the first line and the headers of a request, and in its query. */
import { deepEqual, equal, ok } from 'node:assert/strict'
import type { Request } from 'express'
import express from 'express'
import { CallerAddresses, placeOf } from '../../../gateway/http/caller-address.ts'
import { headerPayments, headerToken, idempotencyKey, signInOf, wantsPage } from '../../../gateway/http/request.ts'
import { parsePairs, parseTarget, publicUrl } from '../../../gateway/http/request-target.ts'
import { createLog } from '../../../gateway/observe/log.ts'
import { readCursor, writeCursor } from '../../../gateway/plugin/cursor.ts'
import * as events from '../../../plugins/potus/answers/event-cursor.ts'
import {
  epochMilliseconds,
  epochSeconds,
  FILE_RULES,
  formatMilliseconds,
  PAYLOAD_RULES,
  readTimestamp,
  requireEpochSeconds,
} from '../../../plugins/lib/time/timestamps.ts'
import { acceptedBy, type FuzzTarget } from '../target.ts'

const BASE_URL = 'https://gate.test'
const HASH = events.filterHash({ entity: 'fed' })

/** Headers as Node hands them over: names in lower case, one line each. */
export function headersOf(text: string): Record<string, string> {
  const pairs = text.split('\n').flatMap((line): [string, string][] => {
    const colon = line.indexOf(':')
    return colon > 0 ? [[line.slice(0, colon).trim().toLowerCase(), line.slice(colon + 1).trim()]] : []
  })
  return Object.fromEntries(pairs)
}

function callersBehind(trustedProxies: readonly string[]): CallerAddresses {
  return new CallerAddresses({ trustedProxies, baseUrl: BASE_URL, log: createLog('silent') })
}

const [named, unnamed] = [callersBehind(['10.0.0.0/8', '::1', 'fc00::/7']), callersBehind([])]

export const REQUESTS: readonly FuzzTarget[] = [
  {
    name: 'request-target',
    maxBytes: 16_000,
    seeds: [
      '/v1/regime/current',
      '/v1/regime/history?start=2026-02-01&limit=10',
      'http://other/v1/x?a=1',
      '/v1/potus/event/a%20b',
      '/v1//x',
      '/v1/../x',
      '*',
    ],
    words: ['/v1/', '..', '%2f', '%5c', '%00', '%', '?', '#', 'http://', 'https://user:x@', '&', '=', '[', '//'],
    read(input) {
      const target = parseTarget(input.toString('latin1'))
      if (!target) return
      const url = new URL(publicUrl(BASE_URL, target))
      equal(url.origin, BASE_URL)
      // No reader of addresses finds another path in it.
      equal(url.pathname.split('/').length, target.path.split('/').length)
      acceptedBy(() => parsePairs(target.search))
    },
  },
  {
    name: 'query',
    maxBytes: 64_000,
    seeds: ['a=1&b=2&a=3', '?start=2026-02-01&end=&limit=10', '__proto__=1&constructor=2', 'a[]=1&a[b]=2', '%41=%zz'],
    words: ['&', '=', '+', '%', '%25', '__proto__', 'a=', '[]'],
    read(input) {
      const text = input.toString('utf8')
      const pairs = acceptedBy(() => parsePairs(text))
      if (!pairs) return
      equal(Object.getPrototypeOf(pairs), Object.prototype)
      const expected = new URLSearchParams(text)
      deepEqual(new Set(Object.keys(pairs)), new Set(expected.keys()))
      for (const [name, value] of Object.entries(pairs)) deepEqual([value].flat(), expected.getAll(name))
    },
  },
  {
    name: 'accept-headers',
    maxBytes: 16_000,
    seeds: [
      'Accept: text/html,application/xhtml+xml;q=0.9,*/*;q=0.8\nAccept-Encoding: gzip, deflate, br;q=0.5',
      'Accept: application/json;q=0.1, text/html;q=0.2\nAccept-Encoding: identity;q=0, *;q=1',
      'Accept: */*\nX-Payment: e30=\nPayment-Signature: e30=\nX-Service-Token: Bearer x\nIdempotency-Key: "k"\nSign-In-With-X: e30=',
      'Accept: text/event-stream\nLast-Event-ID: 7',
    ],
    words: ['text/html', 'application/json', '*/*', ';q=', 'gzip', 'Accept: ', '"', ',', '\\', 'level=1'],
    read(input) {
      const headers = headersOf(input.toString('latin1'))
      const request = Object.assign(Object.create(express.request) as Request, { headers })
      equal(typeof wantsPage(request), 'boolean')
      request.acceptsEncodings('gzip')
      ok(headerPayments(headers).every((each) => each !== ''))
      ok(headerToken(headers) !== '')
      idempotencyKey(headers)
      signInOf(headers)
    },
  },
  {
    name: 'forwarded-headers',
    maxBytes: 16_000,
    seeds: [
      'X-Forwarded-For: 203.0.113.7, 10.0.0.1',
      'X-Forwarded-For: "[2001:db8::1]:443", ::1',
      'X-Forwarded-For: [2001:db8::1]:443, ::ffff:10.0.0.2\nForwarded: for=x\nX-Real-IP: 1.1.1.1',
      'X-Forwarded-For: fe80::1%eth0',
      'X-Forwarded-For: 1.2.3.4:80,',
    ],
    words: ['X-Forwarded-For: ', '::', '::ffff:', '10.0.0.1', ',', '[', ']:', '%', '0x7f.1', '1.2.3.4'],
    read(input) {
      const headers = headersOf(input.toString('latin1'))
      for (const [callers, remoteAddress] of [
        [named, '10.1.2.3'],
        [named, '203.0.113.9'],
        [unnamed, '10.1.2.3'],
      ] as const) {
        const { address } = callers.of({ headers, socket: { remoteAddress } as never })
        ok(address !== '')
        // What a caller writes counts only if a named proxy passed it on.
        if (callers === unnamed || remoteAddress === '203.0.113.9') equal(address, remoteAddress)
        const place = placeOf(address)
        ok(place !== '' && place.length <= address.length + 20)
        equal(placeOf(address), place)
      }
    },
  },
  {
    name: 'cursors',
    maxBytes: 16_000,
    seeds: [
      writeCursor({ asOf: 1_700_000_000, key: ['BTC', 3] }, { limit: 10 }),
      events.writeCursor('asc', { availableAt: 1_700_000_000, seq: 3 }, HASH),
      Buffer.from('["x",1,2]').toString('base64url'),
      Buffer.from('null').toString('base64url'),
    ],
    words: ['e30', 'W10', 'bnVsbA', 'v', 'order', 'seq', 'available_at', 'filter_hash'],
    read(input) {
      for (const text of [input.toString('latin1'), input.toString('base64url')]) {
        const place = acceptedBy(() => readCursor(text, { limit: 10, cursor: text }))
        if (place) deepEqual(readCursor(writeCursor(place, { limit: 10 }), { limit: 10 }), place)
        const position = acceptedBy(() => events.readCursor(text, 'asc', HASH))
        if (position) deepEqual(events.readCursor(events.writeCursor('asc', position, HASH), 'asc', HASH), position)
      }
    },
  },
  {
    name: 'timestamps',
    maxBytes: 4_096,
    seeds: [
      '2026-02-01T01:00+01:00',
      '2026-02-01 09:30:00.123456789Z',
      '20260201;093000',
      'Sun, 01 Feb 2026 09:30:00 GMT',
      '1769904000123456',
      '-1769904000.5',
      '2026/2/1, 9:30 EST',
    ],
    words: ['T', 'Z', '+00:00', 'GMT', 'EST', '24:00:00', '9999', '12-31', '.999999999', 'Feb', '1e11', ' '],
    read(input) {
      const text = input.toString('utf8')
      for (const rules of [undefined, FILE_RULES, PAYLOAD_RULES]) {
        const read = readTimestamp(text, rules)
        if (!read) continue
        ok(read.nanoseconds >= 0 && read.nanoseconds < 1e9 && Number.isSafeInteger(read.seconds))
        const [seconds, milliseconds] = [epochSeconds(text, rules) as number, epochMilliseconds(text, rules) as number]
        ok(Math.abs(seconds * 1000 - milliseconds) <= 1)
        const written = formatMilliseconds(milliseconds)
        equal(epochMilliseconds(written, { ...FILE_RULES, earliest: -1e13, latest: 1e13 }), milliseconds)
      }
      acceptedBy(() => requireEpochSeconds(text, 'start'))
      if (text.trim() !== '') readTimestamp(Number(text))
    },
  },
]
