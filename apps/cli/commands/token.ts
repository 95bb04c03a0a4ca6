import { Command, InvalidArgumentError, Option } from 'commander';
import { issueToken, subject } from '../../../lib/auth/tokens.ts';
import { loadCliConfig } from '../../../lib/config/cli.ts';
import { type Role, role } from '../../../lib/domain/roles.ts';
import { Refusal } from '../failure.ts';
import { uuid } from '../operate/parse.ts';
import { readSecrets } from '../stack/secrets.ts';

interface Options {
  role: Role;
  org?: string;
  sub?: string;
  hours: number;
  dataDir?: string;
  json?: boolean;
}

const hours = (text: string) => {
  const value = Number(text);
  if (!(value > 0 && value <= 24 * 365)) throw new InvalidArgumentError('expects hours, up to a year');
  return value;
};

const person = (text: string) => {
  if (!subject.safeParse(text).success)
    throw new InvalidArgumentError('Expects 1 to 200 characters, none of them a control character.');
  return text;
};

export const tokenCommand = () =>
  new Command('token')
    .description('print a token for development, signed with JWT_SECRET or the secret of the data folder')
    .addOption(new Option('--role <role>', 'whose token').choices(role.options).default('specialist'))
    .option('--org <id>', 'the organisation; by default that of the data folder', uuid)
    .option('--sub <subject>', 'the person; by default dev-<role>', person)
    .option('--hours <n>', 'how long it is good for', hours, 24)
    .option('--data-dir <folder>', 'of the installation that it is for (default BAKEHOUSE_DATA_DIR or .bakehouse/data)')
    .option('--json', 'print it as one JSON object')
    .action(async (options: Options) => {
      const config = loadCliConfig();
      const kept = await readSecrets(options.dataDir ?? config.BAKEHOUSE_DATA_DIR);
      const secret = config.JWT_SECRET ?? kept?.jwtSecret;
      if (!secret)
        throw new Refusal(
          'configuration',
          'There is no secret to sign with: set JWT_SECRET, or run `bakehouse up` once.',
        );
      const orgless = options.role === 'superadmin' || options.role === 'ops';
      if (orgless && options.org !== undefined)
        throw new Refusal(
          'usage',
          `A token of ${options.role} belongs to no organisation: leave --org out, or give --role manager, specialist or patient.`,
        );
      const org = options.org ?? (orgless ? undefined : kept?.orgId);
      if (!orgless && org === undefined)
        throw new Refusal('usage', `A ${options.role} belongs to an organisation: give --org.`);
      const token = await issueToken({
        secret,
        role: options.role,
        sub: options.sub ?? `dev-${options.role}`,
        org,
        issuer: config.JWT_ISSUER,
        audience: config.JWT_AUDIENCE,
        ttlSeconds: Math.round(options.hours * 3600),
      });
      process.stdout.write(`${options.json ? JSON.stringify({ token }) : token}\n`);
    });
