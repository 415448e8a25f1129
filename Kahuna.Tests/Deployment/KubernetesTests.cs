using k8s;
using k8s.Models;
using Kahuna.Server.Hosting;
using Kahuna.Server.Hosting.Options;
using YamlDotNet.Core;
using YamlDotNet.Serialization;

namespace Kahuna.Tests.Deployment;

/// <summary>
/// The manifests have the types and fields of the Kubernetes API, and they agree with each other and with the node.
/// </summary>
public sealed class KubernetesTests
{
    private const string Folder = "kubernetes/";
    private const string PodIndex = "metadata.labels['apps.kubernetes.io/pod-index']";

    private static V1StatefulSet Set => Objects().OfType<V1StatefulSet>().Single();

    private static V1PodSpec Pod => Set.Spec.Template.Spec;

    private static V1Container Container => Pod.Containers.Single();

    [Fact]
    public void Every_object_is_one_of_the_api() =>
        Assert.Equal(
            [
                typeof(V1Namespace), typeof(V1Service), typeof(V1Service), typeof(V1PodDisruptionBudget),
                typeof(V1StatefulSet),
            ],
            Objects().Select(static found => found.GetType()));

    [Fact]
    public void A_field_that_the_api_does_not_have_is_found() =>
        Assert.Throws<YamlException>(() => Load(
            Deployed.Text(Folder + "pod-disruption-budget.yaml")
                .Replace("maxUnavailable", "maxUnavailble", StringComparison.Ordinal)));

    [Fact]
    public void Kustomize_takes_every_file_and_the_version_of_the_product()
    {
        Dictionary<string, object> all = new DeserializerBuilder().Build()
            .Deserialize<Dictionary<string, object>>(Deployed.Text(Folder + "kustomization.yaml"));
        Assert.Equal(
            Deployed.Files.Select(static file => file["deploy/".Length..])
                .Where(static file => file.StartsWith(Folder, StringComparison.Ordinal))
                .Select(static file => file[Folder.Length..])
                .Where(static file => file != "kustomization.yaml")
                .Order(StringComparer.Ordinal),
            Resources().Order(StringComparer.Ordinal));
        Dictionary<object, object> image = Assert.IsType<Dictionary<object, object>>(
            Assert.Single((List<object>)all["images"]));
        Assert.Equal(Deployed.Version, image["newTag"]);
        Assert.Equal(Container.Image, image["name"]);
        Assert.Equal(Objects().OfType<V1Namespace>().Single().Name(), all["namespace"]);
    }

    [Fact]
    public void All_select_the_pods_of_the_nodes()
    {
        IDictionary<string, string> labels = Set.Spec.Template.Metadata.Labels;
        Assert.Equal(labels, Set.Spec.Selector.MatchLabels);
        Assert.Equal(labels, Objects().OfType<V1PodDisruptionBudget>().Single().Spec.Selector.MatchLabels);
        Assert.All(Objects().OfType<V1Service>(), service => Assert.Equal(labels, service.Spec.Selector));
        Assert.Equal(labels, Assert.Single(
            Pod.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution).LabelSelector.MatchLabels);
        Assert.Equal(labels, Assert.Single(Pod.TopologySpreadConstraints).LabelSelector.MatchLabels);
    }

    [Fact]
    public void A_new_cluster_can_start_and_later_one_node_stops_at_a_time()
    {
        V1Service nodes = Objects().OfType<V1Service>().Single(service => service.Name() == Set.Spec.ServiceName);
        Assert.Equal("None", nodes.Spec.ClusterIP);
        Assert.True(nodes.Spec.PublishNotReadyAddresses);
        Assert.Equal("Parallel", Set.Spec.PodManagementPolicy);
        Assert.Equal("RollingUpdate", Set.Spec.UpdateStrategy.Type);
        Assert.Equal("1", Objects().OfType<V1PodDisruptionBudget>().Single().Spec.MaxUnavailable.Value);
        Assert.True(Pod.TerminationGracePeriodSeconds > 3 * KahunaNode.DrainLimit.TotalSeconds);
    }

    [Fact]
    public void Each_pod_is_the_node_of_its_name()
    {
        using ClusterFiles files = new("deploy/kubernetes/secrets");
        string space = Objects().OfType<V1Namespace>().Single().Name();
        int first = Set.Spec.Ordinals.Start!.Value;
        for (int ordinal = first; ordinal < first + Set.Spec.Replicas; ordinal++)
        {
            NodeOptions options = ClusterFiles.Accepted([], Environment(ordinal), Places(files));
            Assert.Equal(ordinal, options.NodeId.Value);
            Assert.Equal(
                $"https://{Set.Name()}-{ordinal}.{Set.Spec.ServiceName}.{space}.svc:{Port()}/",
                options.Advertise.AbsoluteUri);
            Assert.Equal(Port(), Assert.Single(options.Listen).Port);
            Assert.False(options.Listen[0].IsLoopback);
            Assert.StartsWith(Mount("data").MountPath, options.DataDirectory, StringComparison.Ordinal);
        }

        Assert.Equal(first, ClusterFiles.Accepted([], Environment(first), Places(files)).Peers[0].Id.Value);
    }

    [Fact]
    public void Probes_ask_the_paths_that_a_node_has()
    {
        IReadOnlyList<string> paths = NodePaths.Health();
        foreach ((V1Probe probe, string path) in (
            (V1Probe, string)[])[
                (Container.StartupProbe, "/healthz"),
                (Container.LivenessProbe, "/healthz"),
                (Container.ReadinessProbe, "/readyz"),
            ])
        {
            Assert.Contains(path, paths);
            Assert.Equal(path, probe.HttpGet.Path);
            Assert.Equal("HTTPS", probe.HttpGet.Scheme);
            Assert.Equal(Container.Ports.Single().Name, probe.HttpGet.Port.Value);
        }

        Assert.All(
            Objects().OfType<V1Service>(),
            service => Assert.Equal(Container.Ports.Single().Name, service.Spec.Ports.Single().TargetPort.Value));
        Assert.All(Objects().OfType<V1Service>(), service => Assert.Equal(Port(), service.Spec.Ports.Single().Port));
    }

    [Fact]
    public void Pods_have_no_rights_and_the_user_of_the_image()
    {
        Assert.False(Pod.AutomountServiceAccountToken);
        Assert.True(Pod.SecurityContext.RunAsNonRoot);
        Assert.Equal(ImageTests.User, Pod.SecurityContext.RunAsUser);
        Assert.Equal(ImageTests.User, Pod.SecurityContext.FsGroup);
        Assert.Equal("RuntimeDefault", Pod.SecurityContext.SeccompProfile.Type);
        Assert.False(Container.SecurityContext.AllowPrivilegeEscalation);
        Assert.True(Container.SecurityContext.ReadOnlyRootFilesystem);
        Assert.Equal(["ALL"], Container.SecurityContext.Capabilities.Drop);
        const UnixFileMode Readable = UnixFileMode.UserRead | UnixFileMode.GroupRead;
        Assert.All(Pod.Volumes, static volume => Assert.Equal((int)Readable, volume.Secret.DefaultMode));
    }

    private static int Port() => Container.Ports.Single().ContainerPort;

    private static V1VolumeMount Mount(string name) => Container.VolumeMounts.Single(mount => mount.Name == name);

    private static Dictionary<string, string> Environment(int ordinal) => Container.Env.ToDictionary(
        static variable => variable.Name,
        variable => variable.Value ?? (variable.ValueFrom.FieldRef.FieldPath == PodIndex
            ? $"{ordinal}"
            : throw new InvalidOperationException(variable.Name)));

    /// <summary>The files of the secrets as the page makes them, where the pod has them.</summary>
    private static Dictionary<string, string> Places(ClusterFiles files)
    {
        Assert.Equal(
            ["kahuna-tls", "kahuna-cluster-secret"], Pod.Volumes.Select(static volume => volume.Secret.SecretName));
        string tls = Mount("tls").MountPath;
        return new()
        {
            [tls + "/tls.crt"] = files["kahuna.kahuna.svc.pem"],
            [tls + "/tls.key"] = files["kahuna.kahuna.svc-key.pem"],
            [tls + "/ca.crt"] = files["ca.pem"],
            [Mount("cluster").MountPath + "/secret"] = files["secret"],
        };
    }

    private static IEnumerable<string> Resources() =>
        ((List<object>)new DeserializerBuilder().Build()
            .Deserialize<Dictionary<string, object>>(Deployed.Text(Folder + "kustomization.yaml"))["resources"])
            .Cast<string>();

    private static IEnumerable<object> Objects() =>
        Resources().SelectMany(static file => Load(Deployed.Text(Folder + file)));

    private static List<object> Load(string text) =>
        KubernetesYaml.LoadAllFromString(text, typeMap: null, strict: true);
}
