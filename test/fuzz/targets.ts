/** Every parser of what callers and operators send, as a target of the fuzzer. */
import type { FuzzTarget } from './target.ts'
import { BODIES } from './targets/bodies.ts'
import { CATALOGS } from './targets/catalogs.ts'
import { CREDENTIALS } from './targets/credentials.ts'
import { PAYMENTS } from './targets/payments.ts'
import { REQUESTS } from './targets/requests.ts'
import { UPLOADS } from './targets/uploads.ts'

export const TARGETS: readonly FuzzTarget[] = [
  ...PAYMENTS,
  ...CREDENTIALS,
  ...REQUESTS,
  ...BODIES,
  ...UPLOADS,
  ...CATALOGS,
]
