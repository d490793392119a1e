/**
 * What SECURITY.md promises, and the tests that prove each promise: by file, as titles without their `describe`. A title
 * that ends in "…" stands for all that begin like it. `npm run docs` writes docs/security-tests.md from this list, and
 * `npm test` fails if one of the tests did not run and pass.
 */

type TestsByFile = Readonly<Record<string, readonly string[]>>

/** An attack on an earlier version that got something, or, without a number, one that was suspected and tried. */
interface Attack {
  readonly number?: number
  readonly attack: string
  readonly now: string
  readonly tests: TestsByFile
}

export interface SecurityPromise {
  readonly promise: string
  readonly tests: TestsByFile
  readonly attacks: readonly Attack[]
}

export interface NamedTest {
  /** The file with the text of the title. */
  readonly file: string
  /** The title without its `describe`, or the beginning of several. */
  readonly title: string
  readonly isBeginning: boolean
}

/** Reads a list of tests. */
export function namedTests(tests: TestsByFile): readonly NamedTest[] {
  return Object.entries(tests).flatMap(([file, titles]) =>
    titles.map((text) => {
      const isBeginning = text.endsWith('…')
      return { file, isBeginning, title: isBeginning ? text.slice(0, -1).trimEnd() : text }
    }),
  )
}

/** All tests of some promises, those against attacks included. */
export function testsOf(promises: readonly SecurityPromise[]): readonly NamedTest[] {
  return promises.flatMap(({ tests, attacks }) => [tests, ...attacks.map((attack) => attack.tests)].flatMap(namedTests))
}

/** The tests that match none of the titles: they did not run, or did not pass. */
export function notAmong(named: readonly NamedTest[], titles: Iterable<string>): readonly NamedTest[] {
  const all = [...titles]
  const exact = new Set(all)
  return named.filter(({ title, isBeginning }) =>
    isBeginning ? !all.some((each) => each.startsWith(title)) : !exact.has(title),
  )
}

export const SECURITY_PROMISES: readonly SecurityPromise[] = [
  {
    promise: 'No answer is delivered unpaid',
    tests: {
      'test/money/model.test.ts': [
        'never charges twice, delivers unpaid or loses a payment in random runs with crashes and faults at every step',
      ],
      'test/money/crash.test.ts': ['right after it …'],
      'test/http/bypasses.test.ts': ['gives its answer to whoever pays, and to nobody in at least forty other ways'],
      'test/money/matrix/chain.test.ts': [
        'delivers a plan only once its payment is final, and charges nobody if a reorganisation comes first',
      ],
      'test/money/matrix/reversals.test.ts': [
        'is never delivered if a rollback lets the buyer spend the money first',
        'is delivered one block deeper than that …',
      ],
    },
    attacks: [
      {
        number: 6,
        attack: 'A lying node invents a settlement',
        now: 'Two nodes decide from 1 USD on',
        tests: {
          'test/money/matrix/lying-nodes.test.ts': [
            'delivers nothing if one node invents the settlement, and charges nothing',
            'waits for agreement while one node …',
          ],
          'test/gateway/accounting/reconciliation/two-nodes.test.ts': [
            'owes nothing for a payment that one node invents',
          ],
        },
      },
      {
        number: 7,
        attack: 'A rollback of one block takes the payment of a plan back',
        now: 'Plans wait for five blocks, and reversed payments take their tokens back',
        tests: {
          'test/money/matrix/reversals.test.ts': [
            'is never delivered if a rollback lets the buyer spend the money first',
            'is reversed if a rollback lets the buyer spend the money first: token revoked, debt booked, alarm raised',
          ],
          'test/money/matrix/shallow-plans.test.ts': [
            'is delivered only once its payment is five blocks deep, though cheap answers leave at once',
          ],
        },
      },
      {
        number: 21,
        attack: 'A rollback of exactly `CONFIRM_BLOCKS` takes a delivered plan back',
        now: 'A plan waits for one block more',
        tests: { 'test/money/matrix/reversals.test.ts': ['is delivered one block deeper than that …'] },
      },
    ],
  },
  {
    promise: 'Nobody is charged without an answer, or a debt in the ledger',
    tests: {
      'test/money/matrix/chain.test.ts': ['releases a payment whose transaction reverted, and delivers no answer'],
      'test/gateway/payments/recovery.test.ts': ['records a settlement without a stored answer as a debt'],
      'test/money/full-disk.test.ts': [
        'charges once and delivers once if the disk fills up before a payment is recorded as …',
      ],
    },
    attacks: [
      {
        number: 12,
        attack: 'One 500 of a facilitator leaves a buyer at 503',
        now: 'It is asked again within seconds, then the next one',
        tests: {
          'test/money/matrix/facilitator.test.ts': [
            'asks a facilitator that …',
            'delivers through the next facilitator if one answers 500 every time',
          ],
        },
      },
      {
        attack: 'After "nothing was charged" somebody submits the authorization',
        now: 'It becomes a debt to the buyer',
        tests: {
          'test/gateway/payments/debts.test.ts': ['becomes a debt to the buyer, once, and only if it had been sent'],
          'test/gateway/accounting/reconciliation/reconciliation.test.ts': [
            'records a debt if a payment arrives on the chain after it was released',
          ],
        },
      },
    ],
  },
  {
    promise: 'Nobody is charged twice for one payment',
    tests: {
      'test/money/payments.test.ts': ['runs the handler once, settles once, and gives all callers the same answer'],
      'test/dynamic/stream-payments.test.ts': [
        'is charged once for three identical requests at the same time, and all get the stream',
      ],
      'test/money/two-processes.test.ts': [
        'pays for as many answers as it covers, whichever process gets the payments',
      ],
    },
    attacks: [
      {
        number: 8,
        attack: 'One nonce signed for two prices keeps a loop running after its caller has left',
        now: '409 at once, and no loop outlives its caller',
        tests: {
          'test/money/nonce-conflicts.test.ts': [
            'is refused with a 409 at once while the first is pending, without a look at the chain',
            'is tried no more once its caller has left',
          ],
        },
      },
    ],
  },
  {
    promise: 'One payment buys one answer',
    tests: {},
    attacks: [
      {
        number: 1,
        attack: 'One payment sent to two gateways with one `PAY_TO` and a journal each: two deliveries, one charge',
        now: 'Both alarm within a minute and name who sent it; with `SETTLEMENT=strict` only the sender delivers',
        tests: {
          'test/money/siblings.test.ts': [
            'both deliver the same payment by default, and the one that did not send it alarms …',
            'exactly one delivers the same payment in strict mode, and the other one owes it …',
          ],
          'test/scripts/check.test.ts': ['says that one PAY_TO needs one journal, unless money is not real'],
        },
      },
      {
        attack: 'Each process holds balances for itself, so several promise the same money',
        now: 'The journal holds them',
        tests: {
          'test/money/two-processes.test.ts': [
            'pays for as many answers as it covers, whichever process gets the payments',
          ],
        },
      },
      {
        attack: 'A paid stream can be fetched again without limit',
        now: '20 times, and only until its payment expires, at most an hour and five minutes. It needs the proof of a replay',
        tests: {
          'test/dynamic/paid-event-streams.test.ts': [
            'is resumed with the same payment, without another charge, until the payment expires',
          ],
          'test/dynamic/stream-payments.test.ts': [
            'does not open the stream again without end',
            'does not open the stream again without end while the payment is in a block that may be replaced',
          ],
        },
      },
    ],
  },
  {
    promise: 'A bought answer goes to its buyer only',
    tests: {},
    attacks: [
      {
        number: 2,
        attack: 'A reader of the chain calls from the place of the buyer and gets the answer, or a plan of 750 USD',
        now: 'A replay needs the Idempotency-Key or the wallet',
        tests: {
          'test/gateway/payments/replay-access.test.ts': [
            'goes to no other address, not even to one of the same /64',
            'does not go to the address that bought it, not even at once, but to the key of the purchase and to the wallet',
            'with each signature once, and not with one that somebody has seen',
          ],
          'test/http/named-proxies.test.ts': [
            'that is not named opens no stored answer to those who share its address',
          ],
        },
      },
      {
        number: 10,
        attack: 'The look-up of a payment tells everybody what a wallet bought',
        now: 'It tells its buyer only',
        tests: {
          'test/gateway/payments/replay-access.test.ts': [
            'to those who read the chain: they get the refusal that they get for a payment that does not exist',
          ],
        },
      },
    ],
  },
  {
    promise: 'A revoked or reversed plan ends within a second',
    tests: {
      'test/gateway/tokens/revocations.test.ts': ['is refused by the other within a second if …'],
      'test/gateway/tokens/access-tokens.test.ts': ['are refused when revoked, whether they are cached or not'],
      'test/dynamic/stream-tokens.test.ts': ['is cut off when the token is revoked, and its upstream is closed'],
    },
    attacks: [],
  },
  {
    promise: 'Tokens and sign-ins cannot be forged or guessed',
    tests: {
      'test/gateway/tokens/access-tokens.test.ts': [
        'are refused when altered, foreign, unsigned, signed with another algorithm, or not a token at all',
        'are refused if our own key signed them with another audience, issuer or type',
      ],
    },
    attacks: [
      {
        number: 22,
        attack:
          'A sign-in for any chain; the same address in many IPv6 spellings; 60 guesses a second of the operator token',
        now: 'Only our networks; one spelling; growing waits',
        tests: {
          'test/gateway/payments/replay-access.test.ts': ['with a message for a network …'],
          'test/gateway/http/caller-address.test.ts': ['has one text and one place in every spelling'],
          'test/operator/console.test.ts': [
            'make their address wait longer each time, in the form and as bearer tokens alike, until the right one comes',
            'from many addresses make each of them wait from its first one on, and nobody else',
          ],
        },
      },
    ],
  },
  {
    promise: 'Revenue goes to PAY_TO only',
    tests: {
      'test/gateway/signer/transaction-policy.test.ts': ['never pay anybody else, alone or in a batch among our own'],
      'test/money/custody.test.ts': [
        'lets settlers transfer only what a buyer has signed, never the money of the recipient',
      ],
    },
    attacks: [],
  },
  {
    promise: 'Keys cannot be read by a plugin',
    tests: {
      'test/dynamic/signer-process.test.ts': [
        'gets the keys through a pipe: they stand in the environment of no process',
      ],
      'test/gateway/signer/signer.test.ts': [
        'signs no other statements: offers, other types, fields or services',
        'stops at SIGNER_GAS_PER_HOUR',
      ],
      'test/gateway/signer/transaction-policy.test.ts': [
        'are no other calls of the token, of Multicall3 or of our own account',
      ],
    },
    attacks: [
      {
        attack: 'A dropped-in plugin reads the keys',
        now: 'They are not in its process',
        tests: { 'test/dynamic/plugin-secrets.test.ts': ['finds none in the environment or the command line of …'] },
      },
    ],
  },
  {
    promise: 'Secrets stay out of logs and files that others can read',
    tests: {
      'test/operator/logs.test.ts': ['names calls and payments, and contains no payment header, key, token or body'],
      'test/scripts/keys.test.ts': [
        'writes a token key set and a settlement key to a new file that only its owner can read, and prints neither',
      ],
    },
    attacks: [
      {
        number: 16,
        attack: 'Another user of the machine reads plan tokens in the journal or its WAL',
        now: 'Files are 0600 and folders 0700 from the first byte, whatever the umask; what was open is closed at the start, with a warning',
        tests: {
          'test/dynamic/private-files.test.ts': [
            'are closed to other users under umask …',
            'are closed at the start if they were open, with one warning, by one process and by workers',
          ],
          'test/gateway/stores/private-files.test.ts': [
            'holds databases that only their user can read, under umask 0000 and without a gateway',
          ],
          'test/gateway/signer/signer.test.ts': [
            'lets no other user connect before the mode of its socket is set, under umask 0000',
          ],
        },
      },
    ],
  },
  {
    promise: 'The console answers its operator only',
    tests: {
      'test/operator/console.test.ts': [
        'answers 401 on every path without the token or with a wrong one',
        'revokes a subscription from its own form, and from no other page',
        'ends a session for good when it is logged out, here, after a restart and in other processes, and no other session',
      ],
    },
    attacks: [],
  },
  {
    promise: 'Failed settlements cost little gas',
    tests: {},
    attacks: [
      {
        number: 3,
        attack:
          'A wallet is honest in the simulation and burns gas in the transaction; a wallet is emptied after the check',
        now: 'Simulation and transaction are equal, payers with code are sent alone, failed settlements make a payer wait',
        tests: {
          'test/money/hostile-payers.test.ts': [
            'is refused before anything is sent if it is a contract wallet (ERC-1271)',
            'is refused before anything is sent if a key signs for an account with code (EIP-7702)',
            'are served, and the evil one never gets into a transaction',
            'costs us the gas of two payments of a stranger, not of all sixty',
            'costs us the gas of a signature once, however often the purse is filled and the signature sent again',
          ],
          'test/money/gas.test.ts': ['raises gas.burnt once the gas of its settlements has cost more than the limit'],
        },
      },
    ],
  },
  {
    promise: 'Paying callers are served whatever unpaid callers send',
    tests: {
      'test/gateway/workers/pool.test.ts': [
        'answers with an error that names the memory limit if a function allocates without bound',
      ],
      'test/http/pipelined-requests.test.ts': [
        'do not take the socket from the server if the last one is …',
        'are not read if their handler does not read',
      ],
      'test/http/unfinished-requests.test.ts': ['costs it the connection'],
      'test/http/unpaid-calls.test.ts': ['is told that its connection ends if it waits to be asked for its body'],
    },
    attacks: [
      {
        number: 4,
        attack: 'One unpaid request with millions of JSON keys or values, or thirty stalled uploads, stop the process',
        now: 'JSON is measured while it arrives, bodies have budgets, payments are checked before a body is read',
        tests: {
          'test/http/unpaid-work.test.ts': [
            'is refused at the key that exceeds the limit, while the rest of the body has not come',
            'is refused at the value that exceeds the limit, while the rest of the body has not come',
            'is refused with one issue if it has thousands of unknown fields',
            'gets its 402 before its body has come, with a payment or a token that is none',
            'gets a JSON-RPC error over MCP, for arguments and for batches',
          ],
          'test/http/bodies.test.ts': ['does not delay others, who are answered while thirty uploads are stalled'],
        },
      },
      {
        number: 5,
        attack: 'Free audits keep paid ones waiting until they fail',
        now: 'Paid work has a queue of its own, full queues refuse at once',
        tests: {
          'test/dynamic/heavy-work.test.ts': [
            'that is free is shed beyond its capacity, and does not delay a small paid call',
            'that is paid is delivered beside as much that is free',
            'that waits for a thread longer than it may run is answered, and counts as no failure of the product',
          ],
        },
      },
      {
        number: 9,
        attack: 'X-Forwarded-For at random passes every rate limit; each process counts for itself',
        now: 'Only named proxies are believed; processes count together',
        tests: {
          'test/http/named-proxies.test.ts': [
            'that is not named cannot choose its address with …',
            'that is named has each of its callers counted, whatever they wrote into the header themselves',
          ],
          'test/dynamic/shared-redis.test.ts': ['hold a caller to one limit, however it spreads its calls'],
        },
      },
      {
        number: 13,
        attack: 'One-byte chunks that arrive after the 402 stop the gateway',
        now: 'The rest of an answered request is dropped without a call for each chunk, within a size and a rate; small chunks count like requests',
        tests: {
          'test/http/unfinished-requests.test.ts': [
            'is not parsed chunk by chunk, and is cut off at the size of the largest body',
            'is told that its connection ends if a long rest follows, and reads that after it has written',
            'counts like requests of its caller, if it is one …',
          ],
        },
      },
      {
        number: 14,
        attack: 'Thousands of pipelined requests are refused and logged in one turn',
        now: 'Four run at once, the first refusal ends the connection, and most refusals are only counted in the log',
        tests: {
          'test/http/pipelined-requests.test.ts': [
            'run a few at a time, and all are answered in order',
            'end with the first that is refused, and refusals are logged a few at a time',
          ],
        },
      },
      {
        number: 15,
        attack: '2,001 tiny free audits from one address delete the reports of all',
        now: 'An address replaces only its own. When all places are taken, new ones are refused',
        tests: {
          'test/plugins/audit/free-reports.test.ts': [
            'make room for newer ones of their own address only',
            'stay when all places are taken, and more are refused before the work, except to buyers',
          ],
          'test/plugins/audit/report-store.test.ts': ['are taken away by nobody else: …'],
        },
      },
      {
        number: 17,
        attack: 'Uploads that announce 39 MB and send 4 kB/s keep every free audit out',
        now: 'A body takes a place when it has arrived; a slow one gets 408; an address has a part of the queue and of the disk',
        tests: {
          'test/http/slow-uploads.test.ts': [
            'take no place from an audit of …',
            'are cut off by their rate, which leaves a request a quarter of an hour',
          ],
          'test/http/bodies.test.ts': [
            'have a part of the disk, beyond which they get 503, and leave the rest to those of others',
          ],
          'test/gateway/http/body-storage.test.ts': [
            'takes every body that comes at the least rate or faster, and no other, whatever is sent beside it',
          ],
          'test/gateway/workers/queues.test.ts': [
            'count what has arrived and not left, whatever arrives, is cut off or leaves, and are empty in the end',
          ],
        },
      },
      {
        number: 18,
        attack: 'Made-up signatures and empty wallets call our nodes without limit',
        now: 'Impossible signatures ask no node, refusals are remembered for seconds, strangers share a budget, buyers have their own',
        tests: {
          'test/money/node-calls.test.ts': [
            'for …',
            'are not made for a signature that no key and no contract wallet can have made',
            'are not made again for an empty wallet …',
            'leave room for buyers elsewhere …',
            'end for strangers at all addresses together, and a wallet that has bought before is served all the same',
          ],
        },
      },
      {
        number: 19,
        attack: 'One address takes all notification streams, or all free event streams',
        now: 'It has a tenth of them',
        tests: {
          'test/http/connections.test.ts': [
            'are at most a tenth for one address behind a named proxy, whatever token it sends, and free again at their end',
          ],
        },
      },
      {
        number: 20,
        attack: 'The founding form stores 60 rows a second from one address',
        now: '20 a day from one address, 5,000 in all; known and new addresses count alike',
        tests: {
          'test/plugins/founding/sign-up-shares.test.ts': [
            'are taken from one address only so often in a day, and others are not kept from signing up',
            'count alike for new and known addresses, so that nobody learns who is on the list',
          ],
        },
      },
      {
        number: 23,
        attack: 'Made-up tokens push the counts of other callers out of memory',
        now: 'A refused call makes no count',
        tests: {
          'test/gateway/http/rate-limit.test.ts': [
            'forgets no caller because another one sends new tokens with calls that are refused',
          ],
        },
      },
      {
        number: 24,
        attack: 'Reports of payments that never settle fill the disk and displace bought ones',
        now: 'A report stays once its call was charged, and goes when it never will be',
        tests: {
          'test/plugins/audit/paid-reports.test.ts': [
            'go when the buyer left before paying and did not come back',
            'go when the settlement was refused',
            'stay until it is known what became of the payment, and then for good',
            'are not displaced by others of the same wallet, paid or not',
          ],
        },
      },
      {
        number: 25,
        attack: 'A wallet hangs up, or empties its purse, and has paid work done for nothing without a bound',
        now: 'Ten unpaid calls, one more every two minutes and with each sale; then 429 before the work',
        tests: {
          'test/money/unpaid-calls.test.ts': [
            'is refused before the work once it has often enough …',
            'cannot outrun the limit with calls at the same time',
            'is served every time on a line that breaks once a call, while the answer is made or after, if it comes back',
          ],
          'test/gateway/payments/unpaid-calls.test.ts': [
            'are ten, one more every two minutes, and one more with each payment that settles',
          ],
        },
      },
      {
        attack: 'A caller who hangs up leaves a stored answer, so attackers fill the disk',
        now: 'A payer has at most 20 such answers and 16 MB of them, all payers together 2,000 and 256 MB; a full disk refuses purchases and charges nothing',
        tests: {
          'test/gateway/payments/unpaid-answers.test.ts': [
            'stop growing at a number for each payer, who is not charged and may pay again',
            'stop growing at a number of bytes for all payers together',
          ],
          'test/money/full-disk.test.ts': [
            'refuses purchases with 503 and charges nothing, and takes the same payment when there is room',
          ],
        },
      },
    ],
  },
  {
    promise: 'Parsers take any input',
    tests: {
      'test/fuzz/parsers.test.ts': [
        'accepts or refuses every input that the fuzzer kept',
        'keep nothing of what they have read',
      ],
      'test/fuzz/fuzzer.test.ts': [
        'finds a fault behind five conditions by the branches that inputs take, and keeps its shortest input',
      ],
    },
    attacks: [],
  },
  {
    promise: 'Damaged data are named, and a signal ends the gateway',
    tests: {
      'test/money/damaged-files.test.ts': [
        'does not start if …',
        'does not start on a read-only disk, says so, and starts once the disk can be written',
      ],
    },
    attacks: [
      {
        number: 11,
        attack: 'Closing the terminal leaves the gateway running, and SIGTERM no longer ends it',
        now: 'Both end it',
        tests: {
          'test/dynamic/signals.test.ts': [
            'SIGHUP reloads the catalog while the terminal is there, and SIGTERM still ends everything',
            'npm start: SIGTERM to …',
            'SIGTERM ends everything in time despite …',
          ],
        },
      },
    ],
  },
  {
    promise: 'Units and containers are confined',
    tests: {
      'test/documents/confinement.test.ts': [
        'is accepted by systemd, and rated as little exposed',
        'has a read-only root, no capabilities, no new privileges and a user of its own',
      ],
    },
    attacks: [],
  },
]
