/** The founding list: stores an e-mail address once and deletes it through the link in every e-mail. */
import { definePlugin, Reply } from 'tollgate/plugin'
import { PRIVATE_HEADERS } from '../lib/private-headers.ts'
import { forgetFormerDays } from './daily-shares.ts'
import { migrations, openMembers } from './members.ts'

const FORGET_SECONDS = 3_600

export default definePlugin({
  name: 'founding',
  migrations,
  setup({ db, now }) {
    const members = openMembers(db)
    return {
      jobs: [{ name: 'forget', everySeconds: FORGET_SECONDS, run: () => forgetFormerDays(db, now()) }],
      handlers: {
        /** Answers and counts new and known addresses alike, so that nobody can find out who is on the list. */
        async joinFounding({ input, client }) {
          const { email, source } = input.body
          await members.join(email, source, now(), client)
          return { ok: true as const, message: 'The address is on the list.' }
        },
        /** Only shows a form: programs that follow links in e-mail must not unsubscribe the reader. */
        getFoundingLeave: ({ input }) => new Reply({ id: input.params.id, left: false }, { headers: PRIVATE_HEADERS }),
        async leaveFounding({ input }) {
          await members.leave(input.params.id)
          return new Reply({ id: input.params.id, left: true }, { headers: PRIVATE_HEADERS })
        },
      },
    }
  },
})
