using Kahuna.Server.Primitives;
using Kahuna.Server.State.Locks;
using Kahuna.Server.State.Rows;
using Kahuna.Wire.Outcomes;

namespace Kahuna.Tests.State.Locks;

/// <summary>
/// Random commands against a model that is a list per lock: the same answers, the same order, on every replica and
/// after loads.
/// </summary>
public sealed class LockModelTests
{
    [Theory]
    [InlineData(1)]
    [InlineData(2)]
    [InlineData(3)]
    [InlineData(4)]
    [InlineData(5)]
    [InlineData(6)]
    public void Random_commands_have_the_outcomes_of_the_model(int seed)
    {
        Random random = new(seed);
        LockDriver locks = new(new StateLimits { WaiterCheckMs = 200 });
        Dictionary<string, ModelLock> model = [];
        for (int step = 0; step < 20_000; step++)
        {
            locks.Now += random.Next(10);
            string name = $"l{(random.Next(2) == 0 ? 2 : random.Next(4))}";
            string owner = $"o{random.Next(name == "l2" ? 40 : 6)}";
            ModelLock known = model.TryGetValue(name, out ModelLock? found) ? found : model[name] = new ModelLock();
            switch (random.Next(10))
            {
                case < 5:
                    LockMode mode = name == "l3"
                        ? LockMode.Permit
                        : random.Next(name == "l2" ? 20 : 3) == 0
                        ? LockMode.Exclusive
                        : LockMode.Shared;
                    int permits = mode == LockMode.Permit ? random.Next(20) == 0 ? 3 : 2 : 0;
                    (int lease, int wait) = (random.Next(1, 300), random.Next(3) == 0 ? 0 : random.Next(1, 500));
                    if (name == "l2" && mode == LockMode.Exclusive)
                    {
                        // Long enough for a queue of readers behind it.
                        (lease, wait) = (3_000, 3_000);
                    }
                    else if (name == "l2")
                    {
                        wait = 3_000;
                    }

                    Answer answer = locks.Acquire(name, owner, lease, wait, mode, permits);
                    known.Acquire(answer, owner, lease, wait, mode, permits, locks.Now);
                    break;
                case < 7:
                    long token = random.Next(10) == 0 ? random.Next(1, 1_000) : known.TokenOf(owner);
                    Assert.Equal(
                        known.Release(owner, token, locks.Now), locks.Release(name, owner, Math.Max(1, token)).Status);
                    break;
                case < 8:
                    long held = known.TokenOf(owner);
                    int more = random.Next(1, 300);
                    Assert.Equal(
                        known.Extend(owner, held, more, locks.Now),
                        locks.Extend(name, owner, Math.Max(1, held), more).Status);
                    break;
                case 8 when random.Next(30) == 0:
                    locks.Reload();
                    break;
                default:
                    do
                    {
                        locks.Sweep(random.Next(1, 20));
                    }
                    while (locks.Machine.Locks.HasWork(new ClusterTime(locks.Now)));

                    foreach (ModelLock each in model.Values)
                    {
                        each.Sweep(locks.Now);
                    }

                    break;
            }

            Compare(locks.Get(name), known, locks.Now);
            if (step % 500 == 0)
            {
                locks.Check();
            }
        }

        locks.Check();
        Assert.True(model.Values.Sum(each => each.Grants) > 2_000);
        Assert.Contains(model.Values, each => each.LeftBehind > 0);
    }

    private static void Compare(
        (List<(string Owner, long Token, long LeftMs)> Holders, int Waiters, int Permits)? told,
        ModelLock known,
        long nowMs)
    {
        Assert.Equal(
            known.Holders.Select(claim => (claim.Owner, claim.Token, claim.EndMs - nowMs)), told?.Holders ?? []);
        Assert.Equal(known.Waiters.Count, told?.Waiters ?? 0);
    }

    private sealed record ModelClaim(string Owner, long Token, LockMode Mode)
    {
        public long LeaseMs { get; set; }

        public long EndMs { get; set; }

        public long WaitEndMs { get; set; }
    }

    private sealed class ModelLock
    {
        private int _permits;

        public List<ModelClaim> Holders { get; } = [];

        public List<ModelClaim> Waiters { get; } = [];

        public int Grants { get; private set; }

        /// <summary>Commands that left claims to be granted by the next sweep.</summary>
        public int LeftBehind { get; private set; }

        public long TokenOf(string owner) => Find(owner)?.Token ?? 0;

        public void Acquire(
            Answer answer, string owner, int leaseMs, int waitMs, LockMode mode, int permits, long nowMs)
        {
            bool isUsed = Holders.Count + Waiters.Count > 0;
            ModelClaim? own = Find(owner);
            if ((own is not null && own.Mode != mode) || (isUsed && _permits != permits))
            {
                Assert.Equal((OutcomeStatus.ModeDiffers, (long)_permits), (answer.Status, answer.Number));
                return;
            }

            if (own is not null && Holders.Contains(own))
            {
                own.EndMs = Math.Max(own.EndMs, nowMs + leaseMs);
                Assert.Equal(
                    (OutcomeStatus.Applied, own.Token, own.EndMs), (answer.Status, answer.Revision, answer.Number));
                return;
            }

            if (own is null && Waiters.Count == 0 && Admits(mode, permits))
            {
                _permits = permits;
                Holders.Add(new ModelClaim(owner, answer.Revision, mode) { EndMs = nowMs + leaseMs });
                Grants++;
                Assert.Equal((OutcomeStatus.Applied, nowMs + leaseMs), (answer.Status, answer.Number));
                return;
            }

            if (waitMs == 0)
            {
                Assert.Equal(
                    (OutcomeStatus.ConditionFailed, Holders.FirstOrDefault()?.Token ?? 0),
                    (answer.Status, answer.Revision));
                return;
            }

            Assert.Equal((OutcomeStatus.Queued, nowMs), (answer.Status, answer.Number));
            if (own is null)
            {
                Waiters.Add(own = new ModelClaim(owner, answer.Revision, mode));
            }

            Assert.Equal(own.Token, answer.Revision);
            (own.LeaseMs, own.WaitEndMs) = (leaseMs, nowMs + waitMs);
        }

        public OutcomeStatus Release(string owner, long token, long nowMs)
        {
            if (Find(owner) is not { } own || own.Token != token)
            {
                return OutcomeStatus.ConditionFailed;
            }

            Holders.Remove(own);
            Waiters.Remove(own);
            Grant(nowMs, LockTable.GrantsPerCommand);
            return OutcomeStatus.Applied;
        }

        public OutcomeStatus Extend(string owner, long token, int leaseMs, long nowMs)
        {
            if (Holders.Find(claim => claim.Owner == owner) is not { } own || own.Token != token)
            {
                return OutcomeStatus.ConditionFailed;
            }

            own.EndMs = Math.Max(own.EndMs, nowMs + leaseMs);
            return OutcomeStatus.Applied;
        }

        public void Sweep(long nowMs)
        {
            Holders.RemoveAll(claim => claim.EndMs <= nowMs);
            Grant(nowMs);
            Waiters.RemoveAll(claim => claim.WaitEndMs <= nowMs);
            Grant(nowMs);
        }

        private void Grant(long nowMs, int countMax = int.MaxValue)
        {
            int count = 0;
            while (Waiters.Count > 0 && (Waiters[0].WaitEndMs <= nowMs || Admits(Waiters[0].Mode, _permits)))
            {
                if (count++ == countMax)
                {
                    LeftBehind++;
                    return;
                }

                ModelClaim next = Waiters[0];
                Waiters.RemoveAt(0);
                if (next.WaitEndMs > nowMs)
                {
                    next.EndMs = nowMs + next.LeaseMs;
                    Holders.Add(next);
                    Grants++;
                }
            }
        }

        private bool Admits(LockMode mode, int permits) =>
            Holders.Count == 0
                || (mode == Holders[0].Mode
                    && (mode == LockMode.Shared || (mode == LockMode.Permit && Holders.Count < permits)));

        private ModelClaim? Find(string owner) =>
            Holders.Find(claim => claim.Owner == owner) ?? Waiters.Find(claim => claim.Owner == owner);
    }
}
